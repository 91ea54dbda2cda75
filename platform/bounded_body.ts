/**
 * Reads a whole body, counted after decompression: Content-Length is not reliable, and a small archive may be large.
 * @returns undefined if it has more than `most` bytes; the rest is not read
 */
export async function readAtMost(
  { body }: Pick<Response, "body">,
  most: number,
): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
