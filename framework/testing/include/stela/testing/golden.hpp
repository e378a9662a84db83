// Golden payloads: what was stored once is read as the same for ever, or a test says so.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/function_ref.hpp>
#include <stela/testing/export.hpp>
#include <stela/testing/fields_archive.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stela::testing {

/// A payload that is read otherwise than when it was written, or that was only written just now.
/// `what()` says what changed and what to do.
class STELA_TESTING_EXPORT GoldenFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A folder with a payload of each event version: "account.deposited.v2.golden". Keep it beside the
/// tests, under version control.
/// Threads: any number at once, for different events.
class STELA_TESTING_EXPORT GoldenPayloads {
 public:
  /// `codec`: that of your databases.
  explicit GoldenPayloads(std::filesystem::path folder, Codec codec = Codec::json);

  /// Reads the payload of this event version, and fails if it is refused, or if a field is gone, is
  /// new, or has another kind or value than when it was written. With JSON, a new optional that is
  /// empty is no change. Where there is no payload yet, one of `sample` is written, which fails,
  /// too, so that a file that was lost is noticed. `sample` counts for nothing else; give each of
  /// its fields a value, and each container an element.
  template <Event E>
  void check(const E& sample) const {
    static_assert(stela::detail::check_event<E>());
    std::string payload;
    codec::encode(codec_, sample, payload);
    check(E::event_type, payload,
          [&](std::string_view bytes) { return fields_of(codec::decode<E>(codec_, bytes)); });
  }

 private:
  using Reader = FunctionRef<std::vector<Field>(std::string_view payload)>;
  void check(const EventType& type, std::string_view sample, Reader read) const;

  std::filesystem::path folder_;
  Codec codec_;
};

}  // namespace stela::testing
