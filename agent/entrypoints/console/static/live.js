// Shows an incident as it moves; without a script the page refreshes itself.
"use strict";
(() => {
  const found = document.querySelector("[data-live]");
  if (!found || !window.EventSource) return;
  let seen = found.dataset.seen;
  const stream = new EventSource(found.dataset.live);
  const inUse = () => document.activeElement && document.activeElement.matches("input, textarea, select");
  const show = (main) => {
    const old = document.getElementById("main");
    const folds = [...old.querySelectorAll("details[id]")];
    const focused = document.activeElement && document.activeElement.closest("#main details[id]");
    old.replaceWith(document.adoptNode(main));
    for (const fold of folds) {
      const same = document.getElementById(fold.id);
      if (same) same.open = fold.open;
    }
    const again = focused && document.getElementById(focused.id);
    if (again) again.querySelector("summary").focus({ preventScroll: true });
  };
  const follow = async (mark) => {
    if (inUse()) return;
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = next.getElementById("main");
    if (!main || inUse()) return;
    seen = mark;
    show(main);
    document.title = next.title;
    if (!document.querySelector("[data-live]")) stream.close();
  };
  stream.onmessage = ({ data }) => {
    if (data !== seen) follow(data);
  };
  stream.onerror = async () => {
    if (stream.readyState !== EventSource.CLOSED) return;
    await follow("").catch(() => {});
    if (document.querySelector("[data-live]")) setTimeout(() => location.reload(), 5000);
  };
})();
