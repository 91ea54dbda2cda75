import type { Plugin } from "../core/plugin.ts";
import awsAssumeRole from "./aws/assume_role.ts";
import awsWebIdentity from "./aws/web_identity.ts";
import channel from "./channel/channel.ts";
import documentMatcher from "./document_matcher/document_matcher.ts";
import kubernetesToken from "./kubernetes_token/kubernetes_token.ts";
import mail from "./mail/mail.ts";
import mailingList from "./mailing_list/mailing_list.ts";
import markdown from "./markdown/markdown.ts";
import oidcToken from "./oidc_token/oidc_token.ts";
import postgresqlRole from "./postgresql_role/postgresql_role.ts";
import roster from "./roster/roster.ts";
import applicationSource from "./source/applications.ts";
import backstageCatalog from "./source/backstage.ts";
import termSource from "./source/terms.ts";
import sshCa from "./ssh_ca/ssh_ca.ts";
import webhook from "./webhook/webhook.ts";
import x509Ca from "./x509_ca/x509_ca.ts";

/** The plugins that are included in the service. Every plugin in this list works. */
export const builtinPlugins: readonly Plugin[] = [
  documentMatcher,
  roster,
  markdown,
  channel,
  mail,
  webhook,
  mailingList,
  termSource,
  applicationSource,
  backstageCatalog,
  postgresqlRole,
  sshCa,
  oidcToken,
  kubernetesToken,
  awsWebIdentity,
  awsAssumeRole,
  x509Ca,
];
