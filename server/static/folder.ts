import { readdirSync, realpathSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";

/** A file that may be served. */
export interface StaticFile {
  /** As it was asked for, from the folder on. */
  name: string;
  /** Where it really is. */
  path: string;
  size: number;
  modified: Date;
  /** Milliseconds; says of another content, also where a build sets the times of all its files to the same one. */
  changed: number;
}

/** A folder with a built front end. Nothing outside of it is ever found, also where a link in it leads there. */
export class Folder {
  private constructor(private readonly root: string) {}

  /** @throws ConfigurationError for what is no folder, or none that we may read */
  static open(path: string): Folder {
    try {
      const root = realpathSync(path);
      // Fails for what is no folder, too.
      readdirSync(root);
      return new Folder(root);
    } catch (cause) {
      throw new ConfigurationError([`STATIC_DIR: there is no folder ${path} that can be read`], { cause });
    }
  }

  /** @param name as `filePath` gives it */
  async file(name: string): Promise<StaticFile | undefined> {
    try {
      const path = await realpath(join(this.root, name));
      if (!path.startsWith(this.root + sep)) return undefined;
      const stats = await stat(path);
      if (!stats.isFile()) return undefined;
      return { name, path, size: stats.size, modified: stats.mtime, changed: stats.ctimeMs };
    } catch {
      // It is not there, or no file can have such a name: all the same to whoever asks.
      return undefined;
    }
  }
}
