/** One element of DER (X.690): its tag and content, and all of its bytes. */
export interface Element {
  tag: number;
  content: Uint8Array;
  raw: Uint8Array;
}

/** Reads all elements of a sequence's content. @throws RangeError for anything that is not DER with one-byte tags */
export function readElements(bytes: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at]!;
    const first = bytes[at + 1];
    if (first === undefined || (tag & 0x1f) === 0x1f || first === 0x80) throw new RangeError("not DER");
    const extra = first < 0x80 ? 0 : first & 0x7f;
    if (extra > 3) throw new RangeError("an element is too long");
    let length = first < 0x80 ? first : 0;
    for (const byte of bytes.subarray(at + 2, at + 2 + extra)) length = length * 256 + byte;
    const from = at + 2 + extra;
    if (from + length > bytes.length) throw new RangeError("an element is truncated");
    const raw = bytes.subarray(at, from + length);
    elements.push({ tag, content: bytes.subarray(from, from + length), raw });
    at = from + length;
  }
  return elements;
}

/** The content of the single element in `bytes`. @throws RangeError */
export function readElement(bytes: Uint8Array, tag: number): Uint8Array {
  const [only, ...more] = readElements(bytes);
  if (!only || more.length > 0 || only.tag !== tag) throw new RangeError("unexpected element");
  return only.content;
}
