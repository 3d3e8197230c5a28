// What must move on a page: local times, parts that stay current, a box that chooses all rows.
// Everything works without this file.

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function showLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (!Number.isNaN(at.getTime())) {
      element.title = `${element.dateTime} (shown in ${zone})`;
      element.textContent = exact.format(at);
    }
  }
}

function addChoiceOfAll(form) {
  const boxes = [...form.querySelectorAll('tbody input[type="checkbox"][name="id"]')];
  const head = form.querySelector("thead th .hidden");
  if (boxes.length === 0 || head === null) return;
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "Choose all messages of this page");
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
  });
  head.replaceWith(all);
}

// What is larger than its place is scrolled with the arrow keys, so it must be reached by Tab. The rest needs no stop.
function reachScrollable() {
  for (const place of document.querySelectorAll(".wide, pre")) {
    const hides = place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight;
    if (hides === place.hasAttribute("tabindex")) continue;
    if (hides) {
      place.tabIndex = 0;
      place.setAttribute("role", "group");
      place.setAttribute("aria-label", place.querySelector("caption")?.textContent ?? "Scrollable content");
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) place.removeAttribute(name);
    }
  }
}

function isInUse(part) {
  const selection = document.getSelection();
  const selected = selection !== null && !selection.isCollapsed && part.contains(selection.anchorNode);
  return selected || (part.contains(document.activeElement) && document.activeElement !== document.body);
}

// Puts the new content into the parts. False: somebody is using one of them, which stays as it is.
function renew(parts, text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const found = fresh.querySelectorAll("[data-refresh]");
  if (found.length !== parts.length) return true;
  let all = true;
  parts.forEach((part, number) => {
    if (isInUse(part)) {
      all = false;
      return;
    }
    showLocalTimes(found[number]);
    part.replaceChildren(...found[number].childNodes);
  });
  return all;
}

async function refresh(parts) {
  const answer = await fetch(location.href, {
    headers: { "X-Atalanta-Refresh": "1" },
    redirect: "error",
    cache: "no-store",
  });
  if (answer.status === 401) {
    location.reload();
    return;
  }
  if (answer.ok) renew(parts, await answer.text());
}

function poll(parts) {
  const seconds = Math.max(2, Math.min(...parts.map((part) => Number(part.dataset.refresh) || 5)));
  let busy = false;
  setInterval(async () => {
    if (busy || document.hidden) return;
    busy = true;
    try {
      await refresh(parts);
    } catch {
      // The console is away for a moment: the next time may find it.
    } finally {
      busy = false;
    }
  }, seconds * 1000);
}

// Events of the console, as long as the page is seen: browsers have few connections to one host.
// Without them (a proxy that holds them back, too many pages) the page asks every few seconds.
function listen(parts, address) {
  let source = null;
  let failures = 0;
  let given = false;
  let newest = null;
  let waiting = 0;
  const show = () => {
    clearTimeout(waiting);
    if (newest !== null && !renew(parts, newest)) waiting = setTimeout(show, 3000);
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const giveUp = () => {
    close();
    if (given) return;
    given = true;
    poll(parts);
  };
  const open = () => {
    if (source !== null || given || document.hidden) return;
    let heard = false;
    const opened = new EventSource(address);
    source = opened;
    opened.addEventListener("part", (event) => {
      heard = true;
      failures = 0;
      newest = event.data;
      show();
    });
    opened.addEventListener("stop", giveUp);
    opened.addEventListener("end", () => location.reload());
    opened.addEventListener("error", () => {
      failures += 1;
      if (opened.readyState === EventSource.CLOSED || failures > 3) giveUp();
    });
    setTimeout(() => {
      if (source === opened && !heard) giveUp();
    }, 10000);
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

function keepCurrent() {
  const parts = [...document.querySelectorAll("[data-refresh]")];
  if (parts.length === 0) return;
  const address = parts.length === 1 ? parts[0].dataset.live : undefined;
  if (address && "EventSource" in window) listen(parts, address);
  else poll(parts);
}

showLocalTimes(document);
document.querySelectorAll("form[data-selectable]").forEach(addChoiceOfAll);
keepCurrent();
reachScrollable();
new ResizeObserver(reachScrollable).observe(document.body);
new MutationObserver(reachScrollable).observe(document.body, { childList: true, subtree: true });
