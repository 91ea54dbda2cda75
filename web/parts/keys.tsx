const keys: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["?"], "this help"],
  [["/"], "search"],
  [["j", "k"], "the next or previous row"],
  [["Enter"], "open it"],
  [["n"], "write a note"],
  [["Ctrl", "Enter"], "send what you are writing, as a note"],
  [["Escape"], "close this help, or leave a field"],
];

/** What the keyboard does on the pages. */
export function Keys() {
  return (
    <dl class="facts">
      {keys.map(([names, does]) => (
        <>
          <dt>
            {names.map((name) => (
              <>
                <kbd>{name}</kbd>{" "}
              </>
            ))}
          </dt>
          <dd>{does}</dd>
        </>
      ))}
    </dl>
  );
}
