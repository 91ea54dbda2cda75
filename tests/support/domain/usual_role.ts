/** What most access roles of tests have in common, as an admin sends it. */
export const usualRole = {
  groups: ["oncall"],
  default_duration: 3600,
  max_duration: 7200,
  approval: "none",
  incident_required: false,
  break_glass: false,
  disabled: false,
};
