// Search engines: where their result pages are, what holds the query, which hosts are their own, how they mark
// advertisements and how their redirectors say where a link leads. How results are told apart is in results.js.
// A classic script, since content scripts are not modules; the background imports it for the list it leaves behind.

globalThis.searchblendEngines = (() => {
  const GOOGLE = ["com", "ca", "co.in", "co.jp", "co.uk", "com.au", "com.br", "de", "es", "fr", "it", "nl"];
  const GOOGLES_OWN = [
    ...["www", "maps", "images", "video", "news", "shopping", "scholar", "lens", "translate"],
    ...["accounts", "myaccount", "policies", "consent", "support"],
  ];
  const YANDEX = ["yandex.com", "yandex.ru", "ya.ru", "yandex.by", "yandex.kz", "yandex.uz", "yandex.com.tr"];

  return [
    {
      id: "google",
      name: "Google",
      origins: GOOGLE.map((end) => `https://www.google.${end}/*`),
      matches: GOOGLE.map((end) => `https://www.google.${end}/search*`),
      parameters: ["q"],
      // Its other searches and its accounts; a page of books.google.com is a result.
      own: new RegExp(`^((${GOOGLES_OWN.join("|")})\\.)?google\\.[a-z.]+$`, "u"),
      region: "#search, #rso, #botstuff, #main .kCrYT",
      // text and shopping; a[data-rw] and a[data-agdh] are led to the counter of advertisers' clicks at the press
      advertisements:
        "#tads, #tadsb, #tvcap, #atvcap, #bottomads, [data-text-ad], [data-pla], .pla-unit, " +
        ".pla-unit-container, [class^=commercial-unit], a[data-rw], a[data-agdh]",
      // /goto holds a token that only Google can read
      redirector: /^\/(url|goto)$/u,
      targets: ["q", "url"],
    },
    {
      id: "bing",
      name: "Bing",
      origins: ["https://www.bing.com/*"],
      matches: ["https://www.bing.com/search*"],
      parameters: ["q"],
      own: /(^|\.)bing\.com$/u,
      region: "#b_results .b_algo",
      // some advertisements look like results, but for their links or pictures
      advertisements: ".pa_sb, .adsMvC, [id$=adsMvCarousel], [h$=',Ads'], .b_algo:has(img[src*='id=OADD2.'])",
      redirector: /^\/ck\/a$/u,
      targets: ["u"],
    },
    {
      id: "duckduckgo",
      name: "DuckDuckGo",
      origins: ["https://duckduckgo.com/*", "https://html.duckduckgo.com/*"],
      matches: ["https://duckduckgo.com/*", "https://html.duckduckgo.com/html*"],
      parameters: ["q"],
      own: /(^|\.)duckduckgo\.com$/u,
      region: "[data-testid=mainline], [data-testid=result], .results",
      advertisements: "[data-layout=ad], [data-testid=ad]",
      redirector: /^\/l\/$/u,
      targets: ["uddg"],
    },
    {
      id: "brave",
      name: "Brave",
      origins: ["https://search.brave.com/*"],
      matches: ["https://search.brave.com/search*"],
      parameters: ["q"],
      own: /(^|\.)search\.brave\.com$/u,
      region: "#results .snippet",
      advertisements: "[data-type=ad], #search-ad",
    },
    {
      id: "ecosia",
      name: "Ecosia",
      origins: ["https://www.ecosia.org/*"],
      matches: ["https://www.ecosia.org/search*"],
      parameters: ["q"],
      own: /(^|\.)ecosia\.org$/u,
      region: ".mainline .result, .mainline-results .result",
      advertisements: "[data-test-id*=ad-result], [data-test-id*=product-ad]",
    },
    {
      id: "startpage",
      name: "Startpage",
      origins: ["https://www.startpage.com/*"],
      matches: ["https://www.startpage.com/sp/search*", "https://www.startpage.com/do/*"],
      parameters: ["query", "q"],
      // It sends searches by POST, so the query is not in the address but in its search box, as the server filled it
      // in.
      box: "input[name=query]",
      own: /(^|\.)startpage\.com$/u,
      region: ".w-gl .result, .w-gl__result",
      advertisements: "#gcsa-top, #gcsa-bottom, .a-bg, [id^=adBlock]",
    },
    {
      id: "yahoo",
      name: "Yahoo",
      origins: ["https://*.search.yahoo.com/*"],
      matches: ["https://*.search.yahoo.com/search*"],
      parameters: ["p"],
      // Pages of Yahoo's other services, such as finance.yahoo.com, are results.
      own: /(^|\.)(search|srd|shopping|help|legal|login)\.yahoo\.com$/u,
      region: "#web .algo, ol li, dl li",
      advertisements: ".searchCenterTopAds, .searchCenterBottomAds, .searchRightTopAds, .searchRightBottomAds",
      redirector: /\/RU=|\/\*/u,
    },
    {
      id: "qwant",
      name: "Qwant",
      origins: ["https://www.qwant.com/*"],
      matches: ["https://www.qwant.com/*"],
      parameters: ["q"],
      own: /(^|\.)qwant\.com$/u,
      region: "[data-testid=webResult], [domain], [class*='Web-module__container']",
      advertisements: "[data-testid=adResult], .result--ext",
    },
    {
      id: "yandex",
      name: "Yandex",
      origins: YANDEX.map((host) => `https://${host}/*`),
      matches: YANDEX.map((host) => `https://${host}/search*`),
      parameters: ["text"],
      own: /(^|\.)(yandex\.[a-z.]+|ya\.ru)$/u,
      region: "#search-result .serp-item, .serp-list .serp-item",
      advertisements: ".AdvLabel, .serp-adv-item, .serp-item_type_ad, [data-fast-name=direct], .Organic_withAdvLabel",
      redirector: /^\/clck\//u,
    },
    {
      id: "baidu",
      name: "Baidu",
      origins: ["https://www.baidu.com/*"],
      matches: ["https://www.baidu.com/s*"],
      parameters: ["wd", "word"],
      // Pages of Baidu's other services, such as its encyclopedia, are results.
      own: /^(www|m|image|map|v|video|passport|([a-z]+\.)?ubs)\.baidu\.com$/u,
      region: "#content_left .c-container, #content_left .result",
      advertisements: ".ec_tuiguang_container, [data-tuiguang], [cmatchid], #content_left > [id^='300']",
      // /link holds a token that only Baidu can read; the result has its address in `mu`
      redirector: /^\/link$/u,
      address: "mu",
    },
    {
      // Our own pages for tests. Its origin is in no package that people get, so it cannot be allowed there.
      id: "test-engine",
      name: "Test engine",
      origins: ["http://127.0.0.1/*"],
      matches: ["http://127.0.0.1/engine/search*"],
      parameters: ["q"],
      own: /^127\.0\.0\.1$/u,
      region: ".results",
      advertisements: ".ad",
      redirector: /^\/engine\/out$/u,
      targets: ["to"],
    },
  ];
})();
