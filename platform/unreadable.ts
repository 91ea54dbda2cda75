const reasons: Record<string, string> = {
  ENOENT: "the file does not exist",
  ENOTDIR: "a part of its path is not a directory",
  EISDIR: "it is a directory",
  ELOOP: "it has too many levels of symbolic links",
  EIO: "the disk reports an error",
};

/** Why a file cannot be read, as the end of a sentence. */
export function whyUnreadable(error: unknown): string {
  const { code = "" } = (error ?? {}) as { code?: string };
  if (code === "EACCES" || code === "EPERM") {
    const user = process.geteuid?.();
    return `permission denied${user === undefined ? "" : ` to user ${user}`}`;
  }
  return reasons[code] ?? (code || "unknown error");
}
