// Search engines: where their result pages are, which parameter holds the query, which links are results.
// `advertisements` are never results, wherever they stand: engines put them among the results.
// `titles` are the links that people take for results, so one that cannot be read is counted as not understood.
// A classic script, since content scripts are not modules; the background imports it for the list it leaves behind.

globalThis.searchblendEngines = (() => {
  const GOOGLE = ["com", "ca", "co.in", "co.jp", "co.uk", "com.au", "com.br", "de", "es", "fr", "it", "nl"];

  /** A parameter's address, if it is one. @param {string | null} address */
  function target(address) {
    if (address === null) return null;
    try {
      const url = new URL(address);
      return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
    } catch {
      return null;
    }
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

  /** @param {URL} url @param {string} host */
  function isHost(url, host) {
    return url.hostname === host || url.hostname.endsWith(`.${host}`);
  }

  return [
    {
      id: "google",
      name: "Google",
      origins: GOOGLE.map((end) => `https://www.google.${end}/*`),
      matches: GOOGLE.map((end) => `https://www.google.${end}/search*`),
      parameter: "q",
      results: "#search a[href], #rso a[href], #botstuff a[href]",
      titles: "a:has(h3)",
      // text, shopping, and whatever goes through the counter of advertisers' clicks; a[data-rw] is led there at the
      // press
      advertisements:
        "#tads, #tadsb, #tvcap, #atvcap, #bottomads, [data-text-ad], [data-pla], .pla-unit, " +
        ".pla-unit-container, [class^=commercial-unit], a[data-rw], a[data-agdh], a[href*='/aclk?'], a[ping*='/aclk?']",
      // /goto holds a token that only Google can read
      redirectors: ["/url", "/goto"],
      /** @param {URL} url */
      unwrap(url) {
        if (!/(^|\.)google\.[a-z.]+$/u.test(url.hostname)) return url.href;
        return url.pathname === "/url" ? target(url.searchParams.get("q") ?? url.searchParams.get("url")) : null;
      },
    },
    {
      id: "bing",
      name: "Bing",
      origins: ["https://www.bing.com/*"],
      matches: ["https://www.bing.com/search*"],
      parameter: "q",
      results: "#b_results .b_algo a[href]",
      titles: "#b_results h2 a",
      // some advertisements look like results, but for their links or pictures
      advertisements:
        ".b_ad, .b_adTop, .b_adBottom, .b_adLastChild, .b_adPATitleBlock, .b_spa_adblock, .ad_sc, .adsMvC, " +
        ".pa_sb, .productAd, [id$=adsMvCarousel], [h$=',Ads'], .b_algo:has(a[href*='/aclick?']), " +
        ".b_algo:has(img[src*='id=OADD2.'])",
      redirectors: ["/ck/a"],
      /** @param {URL} url */
      unwrap(url) {
        if (!isHost(url, "bing.com")) return url.href;
        const packed = url.pathname === "/ck/a" ? url.searchParams.get("u") : null;
        return packed?.startsWith("a1") ? target(fromBase64Url(packed.slice(2))) : null;
      },
    },
    {
      id: "duckduckgo",
      name: "DuckDuckGo",
      origins: ["https://duckduckgo.com/*", "https://html.duckduckgo.com/*"],
      matches: ["https://duckduckgo.com/*", "https://html.duckduckgo.com/html*"],
      parameter: "q",
      results: "[data-testid=result] a[href], .results .result a[href]",
      titles: "[data-testid=result-title-a], a.result__a",
      advertisements:
        "[data-layout=ad], [data-testid=ad], .result--ad, .results--ads, .result:has(.badge--ad), " +
        "a[href*='duckduckgo.com/y.js']",
      redirectors: ["/l/"],
      /** @param {URL} url */
      unwrap(url) {
        if (!isHost(url, "duckduckgo.com")) return url.href;
        return url.pathname === "/l/" ? target(url.searchParams.get("uddg")) : null;
      },
    },
    {
      // Our own pages for tests. Its origin is in no package that people get, so it cannot be allowed there.
      id: "test-engine",
      name: "Test engine",
      origins: ["http://127.0.0.1/*"],
      matches: ["http://127.0.0.1/engine/search*"],
      parameter: "q",
      results: ".results a[href]",
      titles: ".results a:has(h3)",
      advertisements: ".ad",
      redirectors: ["/engine/out"],
      /** @param {URL} url */
      unwrap(url) {
        if (url.hostname !== "127.0.0.1") return url.href;
        return url.pathname === "/engine/out" ? target(url.searchParams.get("to")) : null;
      },
    },
  ];
})();
