// Runs in search pages, before observe.js, in the extension's own world: the page cannot see or call it.
/** @param {ExtensionMessage} message */
globalThis.searchblendTell = (message) => {
  const api = globalThis.browser ?? globalThis.chrome;
  if (api.extension?.inIncognitoContext) return;
  // After an update of the extension the old script has nobody to tell.
  if (api.runtime?.id) Promise.resolve(api.runtime.sendMessage(message)).catch(() => undefined);
};
