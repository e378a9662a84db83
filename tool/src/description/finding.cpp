#include "description/finding.hpp"

namespace stela::tool {
namespace {

constexpr Field<Finding> finding_fields[] = {
    field<[](const Finding& one) { return facts_of(one.code).word; }>("code"),
    field<[](const Finding& one) { return word_of(one.severity); }>("severity"),
    field<&Finding::subject>("subject", {.kind = Kind::untrusted}),
    field<&Finding::since>("since_at", {.is_nullable = true}),
    field<&Finding::sentence>("sentence"),
    field<&Finding::remedy>("remedy"),
};
}  // namespace

constexpr Description<Finding> description::finding{finding_fields};

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
