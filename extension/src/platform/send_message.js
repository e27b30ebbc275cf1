// Runs in search pages, before observe.js, in the extension's own world: the page cannot see or call it.
/** @param {ExtensionMessage} message */
globalThis.searchblendSend = (message) => {
  const api = globalThis.browser ?? globalThis.chrome;
  if (api.extension?.inIncognitoContext) return;
  // After an update of the extension the old script has no background to send to.
  if (api.runtime?.id) Promise.resolve(api.runtime.sendMessage(message)).catch(() => undefined);
};
