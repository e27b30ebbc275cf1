// Which link of a result page is a result, for every engine of engines.js: by where it leads and by its place, so that
// new names of classes change little. A result leads off the engine's own hosts and is a title, or stands among the
// results; an advertisement has any one of the marks below. A classic script: it runs in result pages.

globalThis.searchblendResults = (() => {
  const TITLE = "h1, h2, h3, h4, [role=heading], [class*=title i], [data-testid*=title], [class*=result__a]";
  // Menus and small print; the head of a result may be a <header> too.
  const NOT_RESULTS = "nav, footer, body > header, [role=navigation], [role=banner], [role=contentinfo]";
  // what engines offer beside a result: their copy and their translation of it
  const COPIES = anyOf("(^|\\.)(", ")$", [
    ...["bingj\\.com", "googleusercontent\\.com", "baiducontent\\.com", "yandexwebcache\\.net"],
    ...["microsofttranslator\\.com", "translate\\.goog"],
  ]);
  // counters of paid clicks, and what they append to the address of the advertiser
  const PAID_LINK = anyOf("(", ")", [
    ...["/aclk\\?", "/aclick\\?", "/y\\.js\\?", "/baidu\\.php\\?", "/cbclk", "/a/redirect\\?"],
    ...["[?&](msclkid|gclid|yclid)=", "://([^/]*\\.)?(googleadservices|doubleclick|googlesyndication)\\."],
    ...["://(yabs|an)\\.yandex\\.", "://e\\.baidu\\.com"],
  ]);
  const PAID_NAME = anyOf("^(", ")$", ["ads?", "adv", "advert[a-z]*", "sponsor[a-z]*", "reklama", "tuiguang"]);
  const PAID_LABEL = anyOf("^\\W*(", ")\\W*$", [
    ...["ads?", "advert(isement)?s?", "sponsored( links?| results?)?", "promoted"],
    ...["anzeigen?", "werbung", "gesponsert", "annonces?", "sponsorisée?s?", "gesponsord", "advertenties?"],
    ...["anuncios?", "patrocinad[oa]s?", "annunci[o]?", "sponsorizzat[oi]", "reklam"],
    ...["реклама", "广告", "廣告", "広告", "スポンサー"],
  ]);

  /** @param {string} before @param {string} after @param {readonly string[]} patterns */
  function anyOf(before, after, patterns) {
    return new RegExp(before + patterns.join("|") + after, "iu");
  }

  /** The address that a redirector's parameter holds. Bing's is in base64 after "a1". @param {string | null} value */
  function readAddress(value) {
    if (value === null) return null;
    const address = value.startsWith("a1") ? fromBase64Url(value.slice(2)) : value;
    const url = address !== null && URL.canParse(address) ? new URL(address) : null;
    return url !== null && /^https?:$/u.test(url.protocol) ? url : null;
  }

  /** @param {string} encoded */
  function fromBase64Url(encoded) {
    try {
      const bytes = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
      return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes, (letter) => letter.charCodeAt(0)));
    } catch {
      return null;
    }
  }

  /** Yahoo's redirectors have the address in their path. @param {string} path */
  function pathAddress(path) {
    const [, encoded, plain] = /\/RU=([^/]+)|\/\*\*?(http.+)$/u.exec(path) ?? [];
    try {
      return readAddress(decodeURIComponent(encoded ?? plain ?? ""));
    } catch {
      return null;
    }
  }

  /** The address that the engine's redirector holds, or null. @param {SearchEngine} engine @param {URL} link */
  function heldAddress(engine, link) {
    const values = (engine.targets ?? []).map((name) => link.searchParams.get(name));
    return readAddress(values.find((value) => value !== null) ?? null) ?? pathAddress(link.pathname + link.search);
  }

  /** @param {SearchEngine} engine @param {URL | null} url */
  function elsewhere(engine, url) {
    return url === null || engine.own.test(url.hostname) || COPIES.test(url.hostname) ? null : url;
  }

  /** Where a link leads, or null if that is a page of the engine or cannot be read.
   * @param {SearchEngine} engine @param {URL} link */
  function unwrap(engine, link) {
    const isOut = !engine.own.test(link.hostname);
    return elsewhere(engine, isOut ? link : isRedirector(engine, link) ? heldAddress(engine, link) : null);
  }

  /** @param {SearchEngine} engine @param {URL} link */
  function isRedirector(engine, link) {
    return engine.redirector?.test(link.pathname) ?? false;
  }

  /** @param {Element} anchor */
  function isTitle(anchor) {
    return anchor.matches(TITLE) || anchor.querySelector(TITLE) !== null || isAlone(anchor, anchor.closest(TITLE));
  }

  /** A heading with several links is a list. @param {Element} anchor @param {Element | null} heading */
  function isAlone(anchor, heading) {
    return heading !== null && [...heading.querySelectorAll("a[href]")].every((other) => sameLink(other, anchor));
  }

  /** @param {Element} one @param {Element} other */
  function sameLink(one, other) {
    return one.getAttribute("href") === other.getAttribute("href");
  }

  /** The result that a link belongs to: as much around it as has no other title. @param {Element} anchor */
  function itemOf(anchor) {
    const { body, links } = anchor.ownerDocument;
    const others = [...links].filter((link) => isTitle(link) && !sameLink(link, anchor));
    const own = isTitle(anchor) ? anchor : null;
    let item = anchor;
    for (let outer = anchor.parentElement; outer && outer !== body; outer = outer.parentElement) {
      const around = others.filter((title) => outer.contains(title));
      if (around.some((title) => own !== null || !sameLink(title, around[0]))) break;
      item = outer;
    }
    return item;
  }

  /** An advertisement by a name, a paid link or a label, of itself or of what it is in.
   * @param {SearchEngine} engine @param {Element} anchor */
  function isAdvertisement(engine, anchor) {
    if (anchor.closest(engine.advertisements)) return true;
    for (let outer = /** @type {Element | null} */ (anchor); outer?.parentElement?.parentElement;) {
      if (hasPaidName(outer)) return true;
      outer = outer.parentElement;
    }
    const item = itemOf(anchor);
    return [item, ...item.querySelectorAll("*")].some((part) => isPaidLink(part) || isPaidLabel(part));
  }

  /** "ad" as a word of an id or a class, as in `b_adTop`, `result--ad`, `SerpAd-module`, or as the whole label.
   * @param {Element} element */
  function hasPaidName(element) {
    const names = `${element.id} ${element.getAttribute("class") ?? ""}`;
    return isPaidText(element.getAttribute("aria-label")) || words(names).some((word) => PAID_NAME.test(word));
  }

  /** @param {string} names */
  function words(names) {
    return names.replaceAll(/([a-z])([A-Z])/gu, "$1 $2").split(/[^A-Za-z]+/u);
  }

  /** @param {string | null} text */
  function isPaidText(text) {
    return text !== null && text.length < 40 && PAID_LABEL.test(text.trim());
  }

  /** @param {Element} element */
  function isPaidLink(element) {
    return ["href", "ping", "data-rw", "data-landurl"].some((name) =>
      PAID_LINK.test(decoded(element.getAttribute(name))),
    );
  }

  /** @param {string | null} address */
  function decoded(address) {
    try {
      return decodeURIComponent(address ?? "");
    } catch {
      return address ?? "";
    }
  }

  /** @param {Element} element */
  function isPaidLabel(element) {
    return element.childElementCount === 0 && isPaidText(element.textContent);
  }

  /** Baidu's results carry the address that their title's redirector hides.
   * @param {SearchEngine} engine @param {Element} anchor */
  function carriedAddress(engine, anchor) {
    const holder = engine.address ? anchor.closest(`[${engine.address}]`) : null;
    const title = holder && [...holder.querySelectorAll("a[href]")].find(isTitle);
    const isIts = title && sameLink(title, anchor);
    return isIts ? elsewhere(engine, readAddress(holder.getAttribute(engine.address ?? ""))) : null;
  }

  /** What a click on this link is: a result with its address, a result that cannot be read ("unread"), or null.
   * @param {SearchEngine} engine @param {HTMLAnchorElement} anchor @param {URL} page @returns {string | null} */
  function resultOf(engine, anchor, page) {
    const link = URL.canParse(anchor.href) ? new URL(anchor.href) : null;
    if (link === null || !/^https?:$/u.test(link.protocol) || anchor.closest(NOT_RESULTS)) return null;
    const isHeading = isTitle(anchor);
    if (!isHeading && anchor.closest(engine.region) === null) return null;
    const url = unwrap(engine, link) ?? (isRedirector(engine, link) ? carriedAddress(engine, anchor) : null);
    const isUnread = url === null && isOpaque(engine, link, page, isHeading);
    if ((url === null && !isUnread) || isAdvertisement(engine, anchor)) return null;
    return url === null ? "unread" : url.href;
  }

  /** On the engine's own host a redirector leads elsewhere, and so may a title that leads to no other page of
   * results. @param {SearchEngine} engine @param {URL} link @param {URL} page @param {boolean} isHeading */
  function isOpaque(engine, link, page, isHeading) {
    if (isRedirector(engine, link)) return heldAddress(engine, link) === null;
    return isHeading && link.host === page.host && link.pathname !== page.pathname;
  }

  return { unwrap, resultOf };
})();
