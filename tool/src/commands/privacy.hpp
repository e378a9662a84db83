// Shared by the commands about personal data.
#pragma once

#include "cli/command.hpp"

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/keyring.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

class Invocation;
class StoreSession;

inline constexpr Operand subject_operand_of_keys{"SUBJECT",
                                                 "the person, by the name of a stream: guest-m1"};

/// The purpose as `--purpose` and tables name it; the default purpose has no name.
inline std::string purpose_of(const std::string& text) {
  return text == "default" ? "" : text;
}

/// Finds fields sealed with given keys, without knowing event types. Threads: any.
class SealMarks {
 public:
  SealMarks(Codec codec, std::span<const KeyInfo> keys);
  bool are_in(std::string_view payload) const;

 private:
  std::vector<std::string> marks_;
};

/// Writes to the store's journal. `detail` names keys, never people.
void note_privacy(Invocation& call, StoreSession& session, const std::string& what,
                  const std::string& subject, const std::string& detail);

/// "key 8PHy8_T19vf4-fr7_P3-_w, key …".
std::string ids_in_words(std::span<const KeyInfo> keys);

}  // namespace stela::tool
