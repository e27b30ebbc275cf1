/** What this extension uses of the browsers' extension interface, and the globals of its content scripts. */

interface ExtensionEvent<Listener> {
  addListener(listener: Listener): void;
}

interface ExtensionManifest {
  version: string;
  /** Firefox alone */
  browser_specific_settings?: { gecko?: { data_collection_permissions?: { optional?: string[] } } };
}

interface MessageSender {
  url?: string;
  tab?: { incognito?: boolean };
}

/** What pages of the extension and content scripts send to the background. */
type ExtensionMessage =
  | { type: "clicked"; engine: string; query: string; url: string }
  | { type: "not-understood"; engine: string }
  | { type: "check"; sendNow?: boolean }
  | { type: "consent-changed" };

/** A message before it is checked: a content script runs beside a page that may have taken it over. */
type ReceivedMessage = { [field in "type" | "engine" | "query" | "url" | "sendNow"]?: unknown } | null | undefined;

/** Firefox asks for the kinds of data too. */
interface Access {
  origins: string[];
  data_collection?: string[];
}

interface ContentScript {
  id: string;
  matches: string[];
  js: string[];
}

interface RegisteredContentScript extends ContentScript {
  runAt: "document_start";
  allFrames: boolean;
  persistAcrossSessions: boolean;
}

interface ExtensionApi {
  runtime: {
    /** undefined in a content script whose extension was updated or removed */
    id?: string;
    getManifest(): ExtensionManifest;
    getURL(path: string): string;
    /** Firefox alone */
    getBrowserInfo?: () => Promise<unknown>;
    openOptionsPage(): Promise<void>;
    sendMessage(message: ExtensionMessage): Promise<unknown>;
    /** A listener that returns true answers later, by calling `respond`. */
    onMessage: ExtensionEvent<
      (message: ReceivedMessage, sender: MessageSender, respond: (answer: unknown) => void) => boolean
    >;
    onStartup: ExtensionEvent<() => void>;
    onInstalled: ExtensionEvent<(details: { reason: string }) => void>;
  };
  i18n: {
    /** "" for a name that no locale has */
    getMessage(name: string, substitutions?: string[]): string;
  };
  alarms: {
    get(name: string): Promise<object | undefined>;
    clear(name: string): Promise<boolean>;
    create(
      name: string,
      when: { when: number } | { delayInMinutes: number; periodInMinutes: number },
    ): Promise<void> | void;
    onAlarm: ExtensionEvent<(alarm: { name: string }) => void>;
  };
  permissions: {
    request(access: Access): Promise<boolean>;
    contains(access: Access): Promise<boolean>;
    remove(access: Access): Promise<boolean>;
    onAdded: ExtensionEvent<() => void>;
    onRemoved: ExtensionEvent<() => void>;
  };
  scripting: {
    getRegisteredContentScripts(): Promise<ContentScript[]>;
    registerContentScripts(scripts: RegisteredContentScript[]): Promise<void>;
    unregisterContentScripts(filter: { ids: string[] }): Promise<void>;
  };
  omnibox: {
    setDefaultSuggestion(suggestion: { description: string }): void;
    onInputChanged: ExtensionEvent<
      (text: string, suggest: (suggestions: { content: string; description: string }[]) => void) => void
    >;
    onInputEntered: ExtensionEvent<(text: string, disposition: string) => void>;
  };
  tabs: {
    create(properties: { url: string }): Promise<unknown>;
    update(properties: { url: string }): Promise<unknown>;
  };
  /** in content scripts */
  extension?: { inIncognitoContext?: boolean };
}

interface SearchEngine {
  id: string;
  name: string;
  /** host permissions that the user is asked for */
  origins: string[];
  /** pages that the content scripts run in */
  matches: string[];
  /** parameters of a page's address that may hold the query */
  parameters: string[];
  /** selector of the search box, where the address may be without the query */
  box?: string;
  /** hosts whose pages are not results */
  own: RegExp;
  /** selector of what holds results: links in it count even if they are not titles */
  region: string;
  /** selector of advertisements that have no mark which results.js knows from all engines */
  advertisements: string;
  /** paths of the engine's own hosts that lead elsewhere */
  redirector?: RegExp;
  /** parameters of redirectors that hold the address */
  targets?: string[];
  /** attribute of a result that holds its address */
  address?: string;
}

declare var browser: ExtensionApi | undefined;
/** Firefox has both. */
declare var chrome: ExtensionApi;
declare var searchblendEngines: SearchEngine[];
declare var searchblendResults: {
  unwrap(engine: SearchEngine, link: URL): URL | null;
  resultOf(engine: SearchEngine, anchor: HTMLAnchorElement, page: URL): string | null;
};
declare var searchblendSend: (message: ExtensionMessage) => void;
