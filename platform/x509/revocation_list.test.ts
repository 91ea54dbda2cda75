import { expect, test } from "bun:test";
import { derElement } from "./der.ts";
import { readRevocationList } from "./revocation_list.ts";

const sequence = (...parts: Uint8Array[]) => derElement(0x30, Buffer.concat(parts));
const oid = (hex: string) => derElement(0x06, Buffer.from(hex, "hex"));
const time = derElement(0x17, Buffer.from("260101000000Z"));
const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));

/** A list with one entry, which has an extension of this type. */
function listWith(type: string, critical?: number) {
  const flag = critical === undefined ? [] : [derElement(0x01, Buffer.of(critical))];
  const extension = sequence(oid(type), ...flag, derElement(0x04, Buffer.of(5, 0)));
  const entry = sequence(derElement(0x02, Buffer.of(7)), time, sequence(extension));
  const signed = sequence(ecdsaWithSha256, sequence(), time, sequence(entry));
  return sequence(signed, ecdsaWithSha256, derElement(0x03, Buffer.of(0)));
}

test("refuses a list with certificates of other authorities", () => {
  const certificateIssuer = "551d1d";
  expect(() => readRevocationList(listWith(certificateIssuer, 0xff))).toThrow(
    "an entry with a critical extension",
  );
  const reason = "551d15";
  expect(readRevocationList(listWith(reason)).serials).toEqual(["07"]);
  expect(readRevocationList(listWith(reason, 0)).serials).toEqual(["07"]);
});
