// The only script of the pages: it keeps a page current, and sends its forms without leaving it. Everything works without
// it, by reloading.

import { Idiomorph } from "idiomorph";

/** Milliseconds. */
const [firstDelay, longestDelay, refreshEvery, sleepGap] = [1000, 2500, 60_000, 10_000];
/** A hidden page connects again when somebody looks at it. */
const longestHiddenDelay = 30_000;
/** How long something may take before the page says so, and before the network counts as cut. */
const [patience, longestFetch] = [2500, 8000];
const main = () => document.querySelector("main")!;
const live = document.querySelector<HTMLElement>(".live");

/** A form with something in it that is not stored yet: a new version of the page leaves it alone. */
function isUnfinished(form: HTMLFormElement): boolean {
  return [...form.elements].some((field) => {
    if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
    if (field instanceof HTMLSelectElement) {
      const options = [...field.options];
      return (
        field.selectedIndex !==
        Math.max(
          0,
          options.findLastIndex((option) => option.defaultSelected),
        )
      );
    }
    if (!(field instanceof HTMLInputElement) || field.type === "hidden") return false;
    return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  });
}

/** Replaces what differs. Focus, selection, scroll position, open menus and unfinished forms stay. */
function show(html: string): void {
  const next = new DOMParser().parseFromString(html, "text/html");
  const content = next.querySelector("main");
  if (!content) return;
  Idiomorph.morph(main(), content, {
    ignoreActiveValue: true,
    restoreFocus: true,
    callbacks: {
      beforeNodeMorphed: (old: Node, now: Node) => {
        if (old instanceof HTMLDetailsElement && now instanceof HTMLDetailsElement) now.open = old.open;
        return !(old instanceof HTMLFormElement && isUnfinished(old));
      },
    },
  });
  takeToken(next);
  const changed = next.title;
  document.title = document.hidden && changed !== undefined ? `● ${changed}` : changed;
}

/** Unfinished forms can be sent after a new sign-in, unless somebody else has signed in. */
function takeToken(next: Document): void {
  const token = next.querySelector<HTMLInputElement>("[name=csrf]")?.value;
  if (token === undefined || next.body.dataset.user !== document.body.dataset.user) return;
  for (const field of document.querySelectorAll<HTMLInputElement>("[name=csrf]")) field.value = token;
}

let fetching: Promise<void> | undefined;
let isStale = false;

/** Fetches the page again. What changes meanwhile leads to one more time. */
function refresh(): Promise<void> {
  // A page without a stream may be the answer to a form: fetching it would drop what it has kept.
  if (!document.body.dataset.stream) return Promise.resolve();
  isStale = true;
  fetching ??= fetchPage().finally(() => {
    fetching = undefined;
  });
  return fetching;
}

async function fetchPage(): Promise<void> {
  clearTimeout(again);
  const late = setTimeout(tellBehind, patience);
  try {
    while (isStale) {
      isStale = false;
      const answer = await fetch(location.href, {
        redirect: "manual",
        headers: { accept: "text/html" },
        signal: AbortSignal.timeout(longestFetch),
      });
      // Read in any case, so that its connection is free.
      const html = await answer.text();
      if (answer.type === "opaqueredirect") signedOut();
      else if (answer.status === 404 || answer.ok) {
        show(html);
        if (isConnected()) tell("live", true);
      } else {
        // The database is slow, or the server is busy.
        tellBehind();
        again = setTimeout(refresh, spread(longestDelay));
      }
    }
  } catch {
    // The stream may not have noticed that the network is cut. When it connects again, it leads here.
    if (isConnected()) connect();
  } finally {
    clearTimeout(late);
  }
}

let again: ReturnType<typeof setTimeout> | undefined;
const isConnected = () => source?.readyState === EventSource.OPEN;
const tellBehind = () => tell(isConnected() ? "slow" : "not live");
/** Not the same for all pages that lose their server at once. */
const spread = (delay: number) => delay * (0.5 + Math.random());

function tell(text: string, isLive = false): void {
  if (!live || live.textContent === text) return;
  live.textContent = text;
  live.classList.toggle("on", isLive);
}

/** What was written stays: the sign-in opens in another tab. */
function signedOut(): void {
  tell("signed out");
  if (!live || document.querySelector(".again")) return;
  const link = document.createElement("a");
  link.className = "again";
  link.href = "/app/sign_in?return=/app/signed_in";
  link.target = "_blank";
  link.textContent = "Sign in again";
  live.after(link);
}

let source: EventSource | undefined;
let delay = firstDelay;
let retry: ReturnType<typeof setTimeout> | undefined;
let late: ReturnType<typeof setTimeout> | undefined;

/** Follows the page's stream. A new connection may have missed something, so the page is fetched again. */
function connect(): void {
  clearTimeout(retry);
  clearTimeout(late);
  source?.close();
  const { stream } = document.body.dataset;
  if (!stream) return;
  const opened = new EventSource(stream);
  source = opened;
  // The browser may have taken a connection that a sleep or another network has cut, and wait for hours.
  late = setTimeout(() => {
    tellBehind();
    late = setTimeout(connect, spread(firstDelay));
  }, patience);
  opened.onopen = () => {
    clearTimeout(late);
    delay = firstDelay;
    document.querySelector(".again")?.remove();
    void refresh();
  };
  opened.addEventListener("event", () => void refresh());
  opened.addEventListener("incident", () => void refresh());
  opened.onerror = () => {
    clearTimeout(late);
    opened.close();
    if (!document.querySelector(".again")) tell("not live");
    // Also when the user has to sign in, which the page's answer tells.
    void refresh();
    retry = setTimeout(connect, spread(delay));
    delay = Math.min(delay * 2, document.hidden ? longestHiddenDelay : longestDelay);
  };
}

/** A connection does not survive a laptop's sleep, and nothing reports that. */
let last = Date.now();
setInterval(() => {
  const now = Date.now();
  if (now - last > sleepGap) connect();
  last = now;
}, 1000);
// Times in it are relative.
setInterval(() => {
  if (!document.hidden) void refresh();
}, refreshEvery);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  if (document.title.startsWith("● ")) document.title = document.title.slice(2);
  if (!isConnected()) connect();
});
addEventListener("online", connect);
addEventListener("pageshow", (event) => (event as PageTransitionEvent).persisted && connect());
connect();

// An entry's address leads to it wherever it is. To one that is here, the page need not be loaded again.
document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest<HTMLAnchorElement>("a.when");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !document.querySelector(link.hash)) return;
  event.preventDefault();
  location.hash = link.hash;
});

// Forms: the answer is shown in place. One that leads to another page is followed.
document.addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  const button = (event as SubmitEvent).submitter as HTMLButtonElement | null;
  if (form.method !== "post") return;
  const address = button?.formAction && button.hasAttribute("formaction") ? button.formAction : form.action;
  if (!/\/app\/(incidents|documents)\//.test(address)) return;
  event.preventDefault();
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  void send(
    form,
    address,
    new URLSearchParams(new FormData(form, button) as unknown as Record<string, string>),
  );
});

const addressOf = ({ pathname, search }: Location | URL) => pathname + search;
/** The address of the page that is shown. */
let shown = addressOf(location);

/** Empty at first, because what an element already has when it appears is not read out. */
function statusOf(form: HTMLFormElement): HTMLElement {
  form.querySelector(".sending")?.remove();
  const status = document.createElement("span");
  status.className = "sending";
  status.role = "status";
  (form.querySelector(".row") ?? form).append(status);
  return status;
}

async function send(form: HTMLFormElement, address: string, body: URLSearchParams): Promise<void> {
  // Beside the button, so that it is seen on every page.
  const status = statusOf(form);
  const late = setTimeout(() => {
    status.textContent = "Still sending";
  }, patience);
  try {
    const answer = await fetch(address, { method: "POST", body });
    const html = await answer.text();
    const place = new URL(answer.url);
    if (answer.ok && place.pathname === location.pathname && document.body.dataset.stream) {
      form.reset();
      status.remove();
      form.closest("details")?.removeAttribute("open");
      // The address may have another view than the answer.
      await refresh();
    } else if (answer.ok && answer.redirected) location.assign(answer.url);
    else if (!html.includes("<main")) {
      // A proxy's, or of a server that stops. What was written stays here.
      status.textContent = `Not sent: ${answer.status}`;
    } else {
      // An error: its page has what was written, and says what is wrong. Or a preview.
      if (addressOf(place) !== shown) history.pushState(null, "", answer.url);
      shown = addressOf(location);
      form.reset();
      document.body.dataset.stream = "";
      source?.close();
      tell("not live");
      show(html);
      const result = main().querySelector<HTMLElement>("[role=alert], #preview");
      result?.focus();
      // The focus alone shows only its heading, at the bottom.
      if (result?.id === "preview") result.scrollIntoView();
    }
  } catch {
    status.textContent = "Not sent: no connection";
  } finally {
    clearTimeout(late);
    form.ariaBusy = null;
  }
}
addEventListener("popstate", () => {
  // Not when only the entry in the address is another.
  if (addressOf(location) !== shown) location.reload();
});

// The browser knows its zone. The user decides.
const zone = document.querySelector<HTMLInputElement>("[name=time_zone]");
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if (zone?.value === "" && timeZone) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = `Your browser is in ${timeZone}: use it`;
  button.onclick = () => {
    zone.value = timeZone;
    zone.focus();
    button.remove();
  };
  zone.after(button);
}

// Keys.
const help = document.querySelector("dialog");
document.querySelector(".help")?.addEventListener("click", (event) => {
  event.preventDefault();
  help?.showModal();
});
const isWriting = ({ target }: Event) =>
  target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  const { key, ctrlKey, metaKey, altKey } = event;
  if (key === "Enter" && (ctrlKey || metaKey) && event.target instanceof HTMLTextAreaElement) {
    event.target.form?.requestSubmit(event.target.form.querySelector<HTMLButtonElement>("button"));
    return;
  }
  if (key === "Escape") (document.activeElement as HTMLElement | null)?.blur();
  if (ctrlKey || metaKey || altKey || isWriting(event)) return;
  const go = (selector: string) => {
    const found = document.querySelector<HTMLElement>(selector);
    if (!found) return;
    event.preventDefault();
    found.focus();
  };
  if (key === "?") help?.showModal();
  else if (key === "/") go("[type=search]");
  else if (key === "n") go("#text");
  else if (key === "j" || key === "k") {
    const links = [...document.querySelectorAll<HTMLElement>("[data-row]")];
    const at = links.indexOf(document.activeElement as HTMLElement);
    const next = links[at < 0 ? (key === "j" ? 0 : links.length - 1) : at + (key === "j" ? 1 : -1)];
    if (next) {
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    }
  }
});

// assets.ts imports this file as text.
export default "";
