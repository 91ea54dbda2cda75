/** The strong validator of RFC 9110, 8.8.3: whatever an answer shows of a record is of this version. */
export const etagOf = ({ version }: { version: number }) => `"${version}"`;
