// The data types of the SSH wire format (RFC 4251, section 5), used by keys, certificates, KRLs and agent messages. All
// numbers are big-endian.

/** A four-byte length, followed by the bytes. */
export function sshString(value: string | Uint8Array): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  const encoded = Buffer.allocUnsafe(4 + bytes.length);
  encoded.writeUInt32BE(bytes.length);
  encoded.set(bytes, 4);
  return encoded;
}

export function sshUint32(value: number): Buffer {
  const encoded = Buffer.allocUnsafe(4);
  encoded.writeUInt32BE(value);
  return encoded;
}

export function sshUint64(value: number | bigint): Buffer {
  const encoded = Buffer.allocUnsafe(8);
  encoded.writeBigUInt64BE(BigInt(value));
  return encoded;
}

/** A positive number from its big-endian bytes: without leading zeros, except one if the first bit would be a sign. */
export function sshMpint(magnitude: Uint8Array): Buffer {
  const start = magnitude.findIndex((byte) => byte !== 0);
  const bytes = start < 0 ? new Uint8Array() : magnitude.subarray(start);
  return sshString(bytes[0] !== undefined && bytes[0] >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

/** Reads encoded data. @throws RangeError when the bytes end too early */
export class SshReader {
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  bytesOf(length: number): Uint8Array {
    if (length > this.bytes.length - this.#at) throw new RangeError("The SSH data is truncated");
    this.#at += length;
    return this.bytes.subarray(this.#at - length, this.#at);
  }

  uint32(): number {
    return Buffer.from(this.bytesOf(4)).readUInt32BE();
  }

  string(): Uint8Array {
    return this.bytesOf(this.uint32());
  }

  text(): string {
    return Buffer.from(this.string()).toString();
  }
}
