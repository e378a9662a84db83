// The description of a finding.
#pragma once

#include "description/description.hpp"
#include "diagnosis/finding.hpp"

#include <string>
#include <vector>

namespace stela::tool {

namespace description {
extern const Description<Finding> finding;
}

/// "CRITICAL".
std::string in_capitals(Severity severity);
/// " (for 17 min)"
std::string age_of(const Finding& finding, Timestamp now);
/// Prints the finding with its age, and its remedy or the operator who acknowledged it.
void print_finding(Output& out, const Finding& finding, Timestamp now);

/// A list of objects. A finding refers to its cause by code and subject.
Json json_of(const std::vector<Finding>& findings);

}  // namespace stela::tool
