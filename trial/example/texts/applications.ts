/** What incidents are about. Those with an `externalId` come from the catalog that application-sync reads. */
export const applications: readonly {
  name: string;
  description: string;
  path: string;
  externalId?: string;
}[] = [
  {
    name: "Parcel API",
    description: "What shops call to send a parcel. Everything else begins here.",
    path: "parcel-api",
    externalId: "component:default/parcel-api",
  },
  {
    name: "Label printer",
    description: "Draws shipping labels, some four hundred a second before noon.",
    path: "label-printer",
    externalId: "component:default/label-printer",
  },
  {
    name: "Tracking",
    description: "The page behind the link in every customer's mail.",
    path: "tracking",
    externalId: "component:default/tracking",
  },
  {
    name: "Depot sync",
    description: "Takes the scan events of forty depots into the event bus.",
    path: "depot-sync",
    externalId: "component:default/depot-sync",
  },
  {
    name: "Rates",
    description: "Tells a shop what a parcel costs with each carrier.",
    path: "rates",
    externalId: "component:default/rates",
  },
  {
    name: "Payments",
    description: "Charges shops and pays carriers.",
    path: "payments",
    externalId: "component:default/payments",
  },
  {
    name: "Ledger",
    description: "Every movement of money, twice. Nothing in it is ever changed.",
    path: "ledger",
    externalId: "component:default/ledger",
  },
  {
    name: "Accounts",
    description: "Sign-in of shops and of our own people.",
    path: "accounts",
    externalId: "component:default/accounts",
  },
  {
    name: "Notices",
    description: "Mail and text messages to customers.",
    path: "notices",
    externalId: "component:default/notices",
  },
  {
    name: "Event bus",
    description: "Kafka, three brokers in each of two regions.",
    path: "event-bus",
  },
  {
    name: "Warehouse",
    description: "Tables for reports; an hour behind at most.",
    path: "warehouse",
  },
  {
    name: "Edge",
    description: "Where requests arrive: TLS, rate limits, routing.",
    path: "edge",
  },
];

export const applicationSource = "backstage-catalog";
export const applicationAddress = (path: string) => `https://catalog.example.com/${path}`;
