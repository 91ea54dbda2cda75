/** The only style sheet, in the page itself; its hash stands in the Content-Security-Policy. */
export const style = `
:root { color-scheme: light dark; --text: #1c2430; --soft: #4a5568; --page: #eef1f5; --card: #fff; --line: #76818f;
  --accent: #1d4ed8; --on-accent: #fff; --warn: #fff4d6; --warn-line: #b7791f; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e8ecf2; --soft: #b3bdca; --page: #11151b; --card: #1b212a;
  --line: #7d8896; --accent: #8ab4ff; --on-accent: #0b1220; --warn: #33290f; --warn-line: #d9a441; --bad: #ffb4ab; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.5rem 1rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 26rem; margin: 4vh auto; padding: 1.75rem; background: var(--card); border-radius: 0.75rem;
  box-shadow: 0 1px 3px rgb(0 0 0 / 0.2); }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
p { margin: 0 0 1rem; }
.trial { padding: 0.75rem 1rem; background: var(--warn); border-left: 4px solid var(--warn-line); border-radius: 0.25rem; }
label { display: block; margin: 1rem 0 0.25rem; font-weight: 600; }
input { width: 100%; padding: 0.625rem 0.75rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--line); border-radius: 0.375rem; }
input[aria-invalid="true"] { border: 2px solid var(--bad); }
.error { margin: 0.375rem 0 0; color: var(--bad); font-weight: 600; }
button { width: 100%; margin-top: 1.25rem; padding: 0.75rem; font: inherit; font-weight: 600; cursor: pointer;
  color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent); border-radius: 0.375rem; }
button.plain { margin-top: 0.75rem; color: var(--accent); background: transparent; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
dl { margin: 0; } dt { font-weight: 600; } dd { margin: 0 0 0.5rem; overflow-wrap: anywhere; }
h2 { margin: 1.75rem 0 0.5rem; font-size: 1rem; } ul { margin: 0 0 0.75rem; padding-left: 1.25rem; color: var(--soft); }
li { overflow-wrap: anywhere; } code { font: 0.95em ui-monospace, Menlo, Consolas, monospace; color: var(--text); }
`;
