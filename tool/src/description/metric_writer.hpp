// Prometheus' text format.
#pragma once

#include "description/histogram.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// `a="b",c="d"`. The values may be any text.
std::string label_text(std::string_view name, std::string_view value);

/// Writes metrics one after the other. A metric that is begun again is written once, with all its
/// values. Threads: one at a time.
class MetricWriter {
 public:
  /// Puts these labels, as made by label_text, before the labels of every later value.
  MetricWriter& label_all(std::string labels);
  /// The following values belong to this metric. `type` is "counter", "gauge" or "histogram".
  MetricWriter& begin(std::string_view name, std::string_view type, std::string_view help);
  /// With labels as label_text makes them.
  MetricWriter& value(double number, std::string_view labels = {});
  MetricWriter& histogram(const Histogram& histogram, std::string_view labels = {});

  std::string text() &&;

 private:
  struct Family {
    std::string name;
    std::string text;
  };

  void line(std::string_view suffix, std::string_view labels, double number);

  std::vector<Family> families_;
  /// The index of the metric being written.
  std::size_t current_ = 0;
  std::string common_;
};

}  // namespace stela::tool
