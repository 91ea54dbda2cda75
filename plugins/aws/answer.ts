import { SaxesParser } from "saxes";

// Parses the answers of STS: XML of which we read only the text of elements.

export interface AwsSession {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiresAt: Date;
}

/** An error of STS. Never pass its message on, because it may repeat what was sent. */
export interface AwsFault {
  code: string;
  message: string;
  requestId?: string;
}

/** The deepest nesting that is accepted, far more than STS uses. */
const deepest = 20;

/** The text of each leaf element by its path of local names. Undefined if the text is not well-formed XML. */
export function parseXml(text: string): Map<string, string> | undefined {
  const found = new Map<string, string>();
  const open: { name: string; text: string; hasElements: boolean }[] = [];
  let isGood = true;
  const fail = () => {
    isGood = false;
  };
  const parser = new SaxesParser({ xmlns: true });
  parser.on("error", fail);
  parser.on("opentag", ({ local }) => {
    const parent = open.at(-1);
    if (parent) parent.hasElements = true;
    if (open.push({ name: local, text: "", hasElements: false }) > deepest) fail();
  });
  const addText = (part: string) => {
    const element = open.at(-1);
    if (element) element.text += part;
  };
  parser.on("text", addText);
  parser.on("cdata", addText);
  parser.on("closetag", () => {
    const path = open.map(({ name }) => name).join("/");
    const closed = open.pop();
    if (!closed || closed.hasElements) return;
    if (found.has(path)) fail();
    found.set(path, closed.text);
  });
  try {
    parser.write(text).close();
  } catch {
    return undefined;
  }
  return isGood && found.size > 0 ? found : undefined;
}

/** The credentials in the answer to an action. Undefined for any other document. */
export function sessionOf(xml: Map<string, string>, action: string): AwsSession | undefined {
  const field = (name: string) => xml.get(`${action}Response/${action}Result/Credentials/${name}`) ?? "";
  const accessKeyId = field("AccessKeyId");
  const secretAccessKey = field("SecretAccessKey");
  const sessionToken = field("SessionToken").trim();
  const expiration = field("Expiration").trim();
  const isKey = /^\w{16,128}$/.test(accessKeyId);
  // A newline in a secret would inject a line into a client's environment or file.
  const isSecret = [secretAccessKey, sessionToken].every((text) => /^[!-~]{1,16000}$/.test(text));
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(expiration);
  const expiresAt = new Date(expiration);
  if (!isKey || !isSecret || !isTime || Number.isNaN(expiresAt.getTime())) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken, expiresAt };
}

/** The error in an answer. Undefined for any other document. */
export function faultOf(xml: Map<string, string>): AwsFault | undefined {
  const code = xml.get("ErrorResponse/Error/Code")?.trim();
  if (code === undefined || !/^[A-Za-z][\w.]{0,99}$/.test(code)) return undefined;
  const requestId = xml.get("ErrorResponse/RequestId")?.trim();
  return {
    code,
    message: xml.get("ErrorResponse/Error/Message") ?? "",
    ...(requestId !== undefined && /^[\w-]{1,64}$/.test(requestId) ? { requestId } : {}),
  };
}
