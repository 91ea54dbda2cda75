import { checksumOf, type Manifest, type Revision } from "../../../drizzle/revision/history.ts";
import { sha256Hex } from "../../../platform/secret.ts";

/** A revision as if read from its folder. */
export function testRevision(
  id: string,
  parents: string[],
  up: string,
  down = "",
  manifest: Partial<Manifest> = {},
): Revision {
  return {
    id,
    parents,
    up,
    down,
    checksum: checksumOf(up, down),
    manifest: {
      message: id,
      created_at: "2026-01-01T00:00:00Z",
      parents,
      compatible: false,
      transactional: true,
      irreversible: false,
      checksums: { up: sha256Hex(up), down: sha256Hex(down) },
      ...manifest,
    },
  };
}
