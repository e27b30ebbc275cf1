"""The private query click graph of Korolova et al. 2009, and what people do with a released one."""
