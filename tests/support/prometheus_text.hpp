// Whether a text is metrics as Prometheus takes them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stela::test {

/// What breaks the text format, or a rule that `promtool check metrics` has, each with its line;
/// empty if nothing does. Stricter than Prometheus: every metric has its HELP and TYPE in front, in
/// this order, and stands in one piece.
std::vector<std::string> problems_in_metrics(const std::string& text);

/// The type of each metric in it: what stands in its TYPE lines.
std::map<std::string, std::string> metric_types_in(const std::string& text);

}  // namespace stela::test
