/** Both outputs of openssl. */
export function openssl(...args: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(["openssl", ...args]);
  return `${stdout}${stderr}`;
}
