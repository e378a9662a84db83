// Removes application data from answers.
#pragma once

#include "console/people.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// Replaces a hidden text. Masking keeps the keys, and the lengths of texts and lists.
inline constexpr std::string_view not_shown = "(not shown)";

/// Hides or masks payloads: those of events, timers and parked messages, metadata, headers and
/// states. Threads: any number may use it.
class Redaction {
 public:
  /// `hides_texts` also hides texts that may quote a payload: tags, errors, the details of a
  /// change. All keys count as such, except known names.
  Redaction(Payloads shown, bool hides_texts) : shown_{shown}, hides_texts_{hides_texts} {}
  /// Also hides whole sentences, because they name application data.
  Redaction without_sentences() const {
    Redaction more{*this};
    more.hides_sentences_ = true;
    return more;
  }

  /// `has_states`: in these answers "state" is an aggregate's state, never a word.
  std::string json(std::string_view json, bool has_states = false) const;
  /// Hides the error that a sentence of the tool quotes after a colon.
  std::string sentence(std::string_view text) const;

 private:
  std::string value(std::string_view key, std::string_view json, bool has_states) const;
  std::string hidden(std::string_view json) const;
  /// Keeps the text through the colon, and hides the quote after it. Without a colon, keeps
  /// everything.
  std::string shown_through(std::string_view text, std::size_t colon) const;
  std::string hidden_text(std::string_view text) const;

  Payloads shown_;
  bool hides_texts_;
  bool hides_sentences_ = false;
};

}  // namespace stela::tool
