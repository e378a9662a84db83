// Prometheus' text form.
#pragma once

#include "description/histogram.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// `a="b",c="d"`, of values that may be anything.
std::string label_text(std::string_view name, std::string_view value);

/// Writes metrics one after the other, each once: one that is begun again gets more values.
/// Threads: one at a time.
class MetricWriter {
 public:
  /// Every value from here on has these labels before its own. As label_text makes them.
  MetricWriter& label_all(std::string labels);
  /// What follows are values of this one. `type` is "counter", "gauge" or "histogram".
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
  /// What is being written, by its place.
  std::size_t current_ = 0;
  std::string common_;
};

}  // namespace stela::tool
