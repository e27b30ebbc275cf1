// Search in a site that is opened as a file. Browsers start no worker from a file, so what a worker would run runs in a
// hidden frame that has what a worker has and a window lacks: importScripts, and messages to whoever started it.
if (location.protocol === "file:") {
  const load = (page, address) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      Object.assign(script, { src: address, onload: resolve, onerror: reject });
      page.body.append(script);
    });

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
      // One after the other, as a worker does; what a worker waits for is promised here.
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, each) => before.then(() => load(inside.document, each)), Promise.resolve());
      this.ready = load(inside.document, address);
      this.addEventListener("message", (event) => this.onmessage?.(event));
    }

    postMessage(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(event));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
