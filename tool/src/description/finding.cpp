#include "description/finding.hpp"

#include "cli/text.hpp"

#include <cctype>

namespace stela::tool {
namespace {

constexpr Field<Finding> finding_fields[] = {
    field<[](const Finding& one) { return facts_of(one.code).word; }>("code"),
    field<[](const Finding& one) { return one.known.empty() ? word_of(one.severity) : "known"; }>(
        "severity"),
    field<&Finding::subject>("subject", {.kind = Kind::untrusted}),
    field<&Finding::since>("since_at"),
    field<&Finding::failure>("failure_class"),
    field<&Finding::sentence>("sentence"),
    field<&Finding::remedy>("remedy"),
    field<&Finding::known>("known"),
};
}  // namespace

constexpr Description<Finding> description::finding{finding_fields};

std::string in_capitals(Severity severity) {
  std::string text;
  for (const char c : word_of(severity)) text += static_cast<char>(std::toupper(c));
  return text;
}

std::string age_of(const Finding& finding, Timestamp now) {
  if (!finding.since || *finding.since >= now) return {};
  return " (for " + in_words(now - *finding.since) + ")";
}

void print_finding(Output& out, const Finding& finding, Timestamp now) {
  const bool is_known = !finding.known.empty();
  out.line((is_known ? "KNOWN" : in_capitals(finding.severity)) + ": " + finding.sentence +
           age_of(finding, now));
  if (is_known) return out.line("  " + finding.known);
  if (!finding.remedy.empty()) out.line("  → " + finding.remedy);
}

Json json_of(const std::vector<Finding>& findings) {
  return json_list(findings, [&](const Finding& one) {
    Json cause{"null"};
    if (one.caused_by) {
      const Finding& other = findings[*one.caused_by];
      cause.text = to_json({{"code", facts_of(other.code).word}, {"subject", other.subject}});
    }
    return to_json(description::finding, one, {{"caused_by", std::move(cause)}});
  });
}

}  // namespace stela::tool
