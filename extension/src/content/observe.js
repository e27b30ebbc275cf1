// On a page of search results: tells the background which result was clicked for which query. Nothing else is read.

(() => {
  const MAIN_BUTTON = 0;
  const MIDDLE_BUTTON = 1;

  function engineOf(address) {
    const page = new URL(address);
    return globalThis.searchblendEngines.find((engine) => engine.origins.some((origin) => origin === `${page.protocol}//${page.hostname}/*`));
  }

  /** {engine, query, url} of a click, or null if it was no click on a result. */
  function searchOf(event, address) {
    if (!event.isTrusted || (event.button !== MAIN_BUTTON && event.button !== MIDDLE_BUTTON)) return null;
    const engine = engineOf(address);
    const anchor = event.target instanceof Element ? event.target.closest("a[href]") : null;
    const query = new URL(address).searchParams.get(engine?.parameter);
    if (!engine || !query || !anchor?.matches(engine.results)) return null;
    const link = URL.canParse(anchor.href) ? new URL(anchor.href) : null;
    if (link === null || !/^https?:$/u.test(link.protocol)) return null;
    const url = engine.unwrap(link);
    return url === null ? null : { engine: engine.id, query, url };
  }

  function onClick(event) {
    // The address is read at the click: pages change it without being loaded anew.
    const search = searchOf(event, location.href);
    if (search !== null) globalThis.searchblendTell({ type: "clicked", ...search });
  }

  for (const kind of ["click", "auxclick"]) addEventListener(kind, onClick, { capture: true, passive: true });
})();
