// The name, type and help of a metric.
#pragma once

#include <string_view>

namespace stela::tool {

struct Metric {
  /// Empty: the field has no metric.
  std::string_view name = {};
  std::string_view type = "gauge";
  std::string_view help = {};
  /// A constant label: `state="pending"`.
  std::string_view label = {};
  std::string_view label_value = {};
};

}  // namespace stela::tool
