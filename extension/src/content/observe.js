// On a page of search results: sends to the background which result was clicked for which query. Nothing else is read.

(() => {
  const MAIN_BUTTON = 0;
  const MIDDLE_BUTTON = 1;

  /** @param {URL} page */
  function engineOf(page) {
    return globalThis.searchblendEngines.find(({ origins }) => origins.some((origin) => isOrigin(origin, page)));
  }

  /** @param {string} origin may be of all hosts below one: `https://*.host/*` @param {URL} page */
  function isOrigin(origin, page) {
    const [protocol, , host] = origin.split("/");
    if (protocol !== page.protocol) return false;
    return host.startsWith("*.") ? `.${page.hostname}`.endsWith(host.slice(1)) : page.hostname === host;
  }

  /** @param {SearchEngine} engine @param {URL} page */
  function queryOf(engine, page) {
    const values = engine.parameters.map((name) => page.searchParams.get(name));
    const box = engine.box ? document.querySelector(engine.box) : null;
    // what the server filled in, and not what is being typed
    return values.find((value) => value) || (box?.getAttribute("value") ?? null);
  }

  /** What a click says: a result that was clicked, a result that cannot be read (without a word of it), or null.
   * @param {MouseEvent} event @param {URL} page @returns {ExtensionMessage | null} */
  function messageOf(event, page) {
    if (!event.isTrusted || (event.button !== MAIN_BUTTON && event.button !== MIDDLE_BUTTON)) return null;
    const engine = engineOf(page);
    const anchor = event.target instanceof Element ? event.target.closest("a[href]") : null;
    // A link inside a drawing (SVG) is not one of these.
    if (!engine || !(anchor instanceof HTMLAnchorElement)) return null;
    const query = queryOf(engine, page);
    const result = query ? globalThis.searchblendResults.resultOf(engine, anchor, page) : null;
    if (!query || result === null) return null;
    return result === "unread"
      ? { type: "not-understood", engine: engine.id }
      : { type: "clicked", engine: engine.id, query, url: result };
  }

  /** @param {MouseEvent} event */
  function onClick(event) {
    // The address is read at the click: pages change it without being loaded anew.
    const message = messageOf(event, new URL(location.href));
    if (message !== null) globalThis.searchblendSend(message);
  }

  for (const kind of /** @type {const} */ (["click", "auxclick"])) {
    addEventListener(kind, onClick, { capture: true, passive: true });
  }
})();
