import { basename, dirname } from "node:path";
import { NotFound, SvcError, Unavailable } from "../../platform/errors.ts";

/** Converts a file system error to one line that names the path and what to do; returns other errors unchanged. */
export function fileError(error: unknown, path: string): unknown {
  if (error instanceof SvcError) return error;
  const options = { cause: error };
  switch ((error as NodeJS.ErrnoException | null)?.code) {
    case "ENOSPC":
    case "EDQUOT":
      return new Unavailable(`The disk is full: ${path} could not be written completely`, options);
    case "EFBIG":
      return new Unavailable(
        `${path} would exceed the maximum file size (ulimit -f, or the file system's own limit)`,
        options,
      );
    case "ENOENT":
      return new NotFound(`There is no ${basename(path)} in ${dirname(path)}`, options);
    case "EACCES":
    case "EPERM":
      return new Unavailable(`No permission: ${path}`, options);
    case "EROFS":
      return new Unavailable(`${path} cannot be written: its file system is read-only`, options);
    case "EISDIR":
      return new Unavailable(`${path} is a directory`, options);
    case "EIO":
      return new Unavailable(`The disk reports an error for ${path}`, options);
    default:
      return error;
  }
}
