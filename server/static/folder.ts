import { readdirSync, realpathSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";

/** A file that may be served. */
export interface StaticFile {
  /** Its requested name, relative to the folder. */
  name: string;
  /** Its real path. */
  path: string;
  size: number;
  modified: Date;
  /**
   * The change time in milliseconds, which detects new content even if a build sets all modification times to the same
   * value.
   */
  changed: number;
}

/** A folder with a built front end. Nothing outside of it is ever served, not even through a link. */
export class Folder {
  private constructor(private readonly root: string) {}

  /** @throws ConfigurationError unless it is a readable folder */
  static open(path: string): Folder {
    try {
      const root = realpathSync(path);
      // This also fails if it is not a folder.
      readdirSync(root);
      return new Folder(root);
    } catch (cause) {
      throw new ConfigurationError([`STATIC_DIR: there is no folder ${path} that can be read`], { cause });
    }
  }

  /** @param name as returned by `filePath` */
  async file(name: string): Promise<StaticFile | undefined> {
    try {
      const path = await realpath(join(this.root, name));
      if (!path.startsWith(this.root + sep)) return undefined;
      const stats = await stat(path);
      if (!stats.isFile()) return undefined;
      return { name, path, size: stats.size, modified: stats.mtime, changed: stats.ctimeMs };
    } catch {
      // It does not exist, or cannot exist under such a name; the caller need not know which.
      return undefined;
    }
  }
}
