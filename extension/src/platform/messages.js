/** The words of _locales in the reader's language; the browser chooses it. No other file has a sentence for people. */

/** The message of a name with $1, $2, … filled in; empty if there is none. @param {string} name
 * @param {...(string | number)} values numbers are written as the language does */
export function message(name, ...values) {
  const api = globalThis.browser ?? globalThis.chrome;
  return api.i18n.getMessage(
    name,
    values.map((value) => (typeof value === "number" ? value.toLocaleString(language()) : value)),
  );
}

/** The message for so many; $1 is the number. @param {string} name @param {number} n
 * @param {...(string | number)} others $2, $3, … */
export function countedMessage(name, n, ...others) {
  const isOne = new Intl.PluralRules(language()).select(n) === "one";
  return message(`${name}_${isOne ? "one" : "other"}`, n, ...others);
}

/** The language of the messages, which is not always the browser's. @returns {string} */
export function language() {
  return message("language");
}

/** Write the messages that a page's elements name: data-message, and for attributes data-placeholder and data-label. */
export function translatePage() {
  document.documentElement.lang = language();
  for (const node of document.querySelectorAll("[data-message], [data-placeholder], [data-label]")) {
    const { message: name, placeholder, label } = /** @type {HTMLElement} */ (node).dataset;
    if (name) node.textContent = message(name);
    if (placeholder) node.setAttribute("placeholder", message(placeholder));
    if (label) node.setAttribute("aria-label", message(label));
  }
}
