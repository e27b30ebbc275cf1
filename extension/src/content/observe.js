// On a page of search results: sends to the background which result was clicked for which query. Nothing else is read.

(() => {
  const MAIN_BUTTON = 0;
  const MIDDLE_BUTTON = 1;

  /** @param {string} address */
  function engineOf(address) {
    const page = new URL(address);
    return globalThis.searchblendEngines.find((engine) =>
      engine.origins.some((origin) => origin === `${page.protocol}//${page.hostname}/*`),
    );
  }

  /** What a click says: a result that was clicked, a result that cannot be read (without a word of it), or null.
   * @param {MouseEvent} event @param {string} address @returns {ExtensionMessage | null} */
  function messageOf(event, address) {
    if (!event.isTrusted || (event.button !== MAIN_BUTTON && event.button !== MIDDLE_BUTTON)) return null;
    const engine = engineOf(address);
    if (!engine) return null;
    const query = new URL(address).searchParams.get(engine.parameter);
    const anchor = event.target instanceof Element ? event.target.closest("a[href]") : null;
    // A link inside a drawing (SVG) is not one of these.
    if (!query || !(anchor instanceof HTMLAnchorElement) || anchor.closest(engine.advertisements)) return null;
    const link = URL.canParse(anchor.href) ? new URL(anchor.href) : null;
    if (link === null || !/^https?:$/u.test(link.protocol)) return null;
    const url = engine.unwrap(link);
    const isListed = anchor.matches(engine.results);
    if (isListed && url !== null) return { type: "clicked", engine: engine.id, query, url };
    const isTitle = anchor.matches(engine.titles);
    const isUnread =
      url === null ? (isListed || isTitle) && isOpaque(engine, link, new URL(address), isTitle) : isTitle;
    return isUnread ? { type: "not-understood", engine: engine.id } : null;
  }

  /** On the engine's own host a redirector leads elsewhere, and so may a title that leads to no other page of
   * results. @param {SearchEngine} engine @param {URL} link @param {URL} page @param {boolean} isTitle */
  function isOpaque(engine, link, page, isTitle) {
    return (
      link.host === page.host &&
      (engine.redirectors.includes(link.pathname) || (isTitle && link.pathname !== page.pathname))
    );
  }

  /** @param {MouseEvent} event */
  function onClick(event) {
    // The address is read at the click: pages change it without being loaded anew.
    const message = messageOf(event, location.href);
    if (message !== null) globalThis.searchblendSend(message);
  }

  for (const kind of /** @type {const} */ (["click", "auxclick"])) {
    addEventListener(kind, onClick, { capture: true, passive: true });
  }
})();
