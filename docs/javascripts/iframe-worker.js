// The search of the site runs in a Worker, and a page that was opened from the file system may not
// start one. There, a hidden frame runs the same script, and messages become events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${new URL(url, location)}"></script>`;
      this.inside = new Promise((done) => {
        frame.addEventListener("load", () => done(frame.contentWindow));
      });
      this.inside.then((inside) => {
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      });
      document.body.append(frame);
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
