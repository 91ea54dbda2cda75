import { createContext } from "preact";

/** For whom a page is rendered. */
export interface ReaderFacts {
  user: string;
  admin: boolean;
  now: Date;
  /** An IANA name. */
  timeZone: string;
  /** They have not chosen a zone, or one that is unknown here. */
  isZoneDefault: boolean;
  csrf: string;
  /** For a page that several readers get: what each of them gets a key for. */
  formKey?: string;
  /** The names of people that the page knows, by user name. */
  names: ReadonlyMap<string, string>;
}

export const Reader = createContext<ReaderFacts>({
  user: "",
  admin: false,
  now: new Date(0),
  timeZone: "UTC",
  isZoneDefault: true,
  csrf: "",
  names: new Map(),
});
