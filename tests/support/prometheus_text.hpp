// Checks the text format of Prometheus metrics.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stela::test {

/// The violations of the text format or of `promtool check metrics`, each with its line; empty if
/// there are none. Stricter than Prometheus: every metric needs its HELP and TYPE before it, in
/// this order, and its samples in one piece.
std::vector<std::string> problems_in_metrics(const std::string& text);

/// The type of each metric, from its TYPE line.
std::map<std::string, std::string> metric_types_in(const std::string& text);

}  // namespace stela::test
