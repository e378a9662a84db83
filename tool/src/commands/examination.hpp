// The findings of a doctor's visit.
#pragma once

#include "cli/output.hpp"
#include "diagnosis/finding.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// Prints each finding at once, and records whether one was critical. Threads: one at a time.
class Examination {
 public:
  explicit Examination(Output& out) : out_{out} {}

  void fine(std::string_view what, const std::string& text) {
    print(word_of(Severity::fine), what, text, "");
  }
  void warn(std::string_view what, const std::string& text, const std::string& advice) {
    print(word_of(Severity::warning), what, text, advice);
  }
  void bad(std::string_view what, const std::string& text, const std::string& advice) {
    is_well_ = false;
    print(word_of(Severity::critical), what, text, advice);
  }
  void tell(const Finding& finding);
  bool is_well() const noexcept { return is_well_; }

 private:
  void print(std::string_view state, std::string_view what, const std::string& text,
             const std::string& advice);

  Output& out_;
  bool is_well_ = true;
};

}  // namespace stela::tool
