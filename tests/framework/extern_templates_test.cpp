// A domain whose codecs are compiled in one file, used from others.
#include "framework/extern_templates/branch.hpp"
#include "support/histories.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::extern_templates_test {
namespace {

using ::testing::ElementsAre;

/// What this file, which compiles codecs of its own, makes of an event.
template <class E>
std::string bytes_of(Codec codec, const E& event) {
  std::string bytes;
  codec::encode(codec, event, bytes);
  return bytes;
}

class ExternTemplates : public ::testing::TestWithParam<Codec> {
 protected:
  testing::MemoryStore store{{.codec = GetParam()}};
  const Id<bank::Account> ada = Id<bank::Account>::from("ada");
};

TEST_P(ExternTemplates, StoreTheBytesThatAnyFileWouldStore) {
  bank::serve(store, ada, "Ada", 500);

  std::vector<std::string> stored;
  for (const StoredEvent& event : store.read_all()) stored.emplace_back(event.payload);
  EXPECT_THAT(stored, ElementsAre(bytes_of(GetParam(), bank::Opened{"Ada", {"new"}}),
                                  bytes_of(GetParam(), bank::Paid{500}),
                                  bytes_of(GetParam(), bank::RateQuoted{25})));
}

TEST_P(ExternTemplates, ReadTheirOwnEvents) {
  bank::serve(store, ada, "Ada", 500);

  EXPECT_EQ(bank::balance(store, ada), 500);
  EXPECT_TRUE(store.find_snapshot(ada.stream(), StreamVersion::max(), GlobalSequence::max()));
}

TEST_P(ExternTemplates, ConvertOldVersions) {
  const std::string old = bytes_of(GetParam(), bank::OpenedV1{"Bob"});
  test::append(store, "account-bob", {NewEvent{"account.opened", 1, true, old}});

  std::vector<bank::Opened> read;
  for (const StoredEvent& event : store.read_all()) read.push_back(bank::read(GetParam(), event));
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].owner, "Bob");
  EXPECT_THAT(read[0].notes, ElementsAre("upcast"));
}

INSTANTIATE_TEST_SUITE_P(Codecs, ExternTemplates,
                         ::testing::Values(Codec::json, Codec::portable_binary),
                         [](const auto& codec) { return std::string{to_string(codec.param)}; });

}  // namespace
}  // namespace stela::extern_templates_test
