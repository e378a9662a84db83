// Golden payloads: a test that payloads stored earlier are still read the same.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/testing/detail/fields_archive.hpp>
#include <stela/testing/export.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stela::testing {

/// A payload was read differently than it was written, or has only just been written. `what()` says
/// what changed and what to do.
class STELA_TESTING_EXPORT GoldenFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A folder with one payload for each event version: "account.deposited.v2.golden". Keep it beside
/// the tests, under version control. Threads: any number at once, for different events.
class STELA_TESTING_EXPORT GoldenPayloads {
 public:
  /// `codec`: the codec of your databases.
  explicit GoldenPayloads(std::filesystem::path folder, Codec codec = Codec::json);

  /// Reads the payload of this event version. Fails if it is refused, or if a field is missing, is
  /// new, or has another kind or value than when it was written. With JSON, a new optional that is
  /// empty is no change. If there is no payload yet, it writes one of `sample` and fails, so that a
  /// lost file is noticed. `sample` serves no other purpose. Give each of its fields a value, and
  /// each container an element.
  template <Event E>
  void check(const E& sample) const {
    static_assert(stela::detail::check_event<E>());
    std::string payload;
    codec::Sealing clear{.show = codec::Sealing::Show::clear};
    codec::encode(codec_, sample, payload, &clear);
    check(E::event_type, payload, [&](std::string_view bytes) {
      const codec::Opening opening{.is_clear = true};
      return fields_of(codec::decode<E>(codec_, bytes, &opening));
    });
  }

 private:
  using Reader = FunctionRef<std::vector<Field>(std::string_view payload)>;
  void check(const EventType& type, std::string_view sample, Reader read) const;

  std::filesystem::path folder_;
  Codec codec_;
};

}  // namespace stela::testing
