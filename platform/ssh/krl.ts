import { sshString, sshUint32, sshUint64 } from "./wire.ts";

// OpenSSH key revocation lists (PROTOCOL.krl). They are unsigned, because OpenSSH does not verify the signatures of KRLs.
// Hosts fetch them over HTTPS.

/** `SSHKRL`, a line feed and a NUL. */
const magic = 0x5353_484b_524c_0a00n;
const formatVersion = 1;
const certificates = 1;
const explicitKeys = 2;
const serialList = 0x20;

/** Serial numbers of revoked certificates, by the key that signed them. */
export interface RevokedSerials {
  blob: Uint8Array;
  serials: readonly number[];
}

/** `version` and `at` are informational. `keys` are revoked with everything they signed. */
export function encodeKrl({
  version,
  at,
  revoked,
  keys,
  comment,
}: {
  version: number;
  at: Date;
  revoked: readonly RevokedSerials[];
  keys: readonly Uint8Array[];
  comment: string;
}): Buffer {
  const header = Buffer.concat([
    sshUint64(magic),
    sshUint32(formatVersion),
    sshUint64(version),
    sshUint64(Math.floor(at.getTime() / 1000)),
    sshUint64(0),
    sshString(""),
    sshString(comment),
  ]);
  const sections = revoked
    .filter(({ serials }) => serials.length > 0)
    .map(({ blob, serials }) => {
      const sorted = [...new Set(serials)].sort((a, b) => a - b);
      const list = Buffer.allocUnsafe(8 * sorted.length);
      for (const [at, serial] of sorted.entries()) list.writeBigUInt64BE(BigInt(serial), 8 * at);
      return section(certificates, [sshString(blob), sshString(""), section(serialList, [list])]);
    });
  if (keys.length > 0) sections.push(section(explicitKeys, keys.map(sshString)));
  return Buffer.concat([header, ...sections]);
}

function section(type: number, parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.of(type), sshString(Buffer.concat(parts))]);
}
