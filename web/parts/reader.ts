import { createContext } from "preact";

/** For whom a page is rendered. */
export interface ReaderFacts {
  user: string;
  admin: boolean;
  now: Date;
  /** An IANA name. */
  timeZone: string;
  csrf: string;
  /** The names of people that the page knows, by user name. */
  names: ReadonlyMap<string, string>;
}

export const Reader = createContext<ReaderFacts>({
  user: "",
  admin: false,
  now: new Date(0),
  timeZone: "UTC",
  csrf: "",
  names: new Map(),
});
