// Random histories of loads, saves, units, nested transactions, repeated ids and failing files, by
// two stores of one database and another process that is killed now and then: after each step, what
// any object in memory says is what a store that was opened just now reads.
#include "projections/author.hpp"
#include "support/fault_vfs.hpp"
#include "support/histories.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::outcome_property_test {
namespace {

using test::Author;
using test::Desk;
using test::FileOperation;
using test::RollBack;

/// A pipe that no other process inherits.
class Ends {
 public:
  Ends() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::runtime_error{"no pipe"};
  }
  ~Ends() {
    for (const int end : ends_) close(end);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  int reading() const noexcept { return ends_[0]; }
  int writing() const noexcept { return ends_[1]; }
  void close_writing() noexcept { close(std::exchange(ends_[1], -1)); }

 private:
  std::array<int, 2> ends_{};
};

/// diary_process.cpp, which does what it is told.
class OtherProcess {
 public:
  OtherProcess(const std::string& path, unsigned seed, const std::string& name)
      : process_{[&] { become(path, std::to_string(seed), name); }} {
    answers_.close_writing();
    if (answer() != "ready") throw std::runtime_error{"the other process didn't start"};
  }

  /// Its answer; nothing if it died of it.
  std::string ask(std::string command) {
    command += '\n';
    if (write(commands_.writing(), command.data(), command.size()) < 0) return {};
    return answer();
  }

 private:
  void become(const std::string& path, const std::string& seed, const std::string& name) const {
    dup2(commands_.reading(), STDIN_FILENO);
    dup2(answers_.writing(), STDOUT_FILENO);
    execl(STELA_DIARY_PROCESS, STELA_DIARY_PROCESS, path.c_str(), seed.c_str(), name.c_str(),
          nullptr);
    throw std::runtime_error{"no " STELA_DIARY_PROCESS};
  }

  std::string answer() {
    constexpr std::string_view end = "\n.\n";
    std::string text;
    std::array<char, 65536> buffer;
    while (!text.ends_with(end)) {
      const ssize_t size = read(answers_.reading(), buffer.data(), buffer.size());
      if (size <= 0) return {};
      text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return text.substr(0, text.size() - end.size());
  }

  Ends commands_;
  Ends answers_;
  test::Process process_;
};

class World {
 public:
  explicit World(unsigned seed) : seed_{seed}, author_{seed, "own"} {
    for (auto& desk : desks_) reopen(desk);
    start_other();
  }

  void step() {
    if (author_.one_in(4)) {
      step_of_other();
    } else {
      step_of_ours();
    }
    check();
  }

  int usable() const { return author_.usable(); }
  int asked() const { return author_.asked(); }
  /// How often the other process died in the middle of writing.
  int deaths() const { return deaths_; }

 private:
  // --- what is done here

  void step_of_ours() {
    auto& desk = desks_[static_cast<std::size_t>(author_.up_to(1))];
    const bool faulty = author_.one_in(4);
    if (faulty) arm();
    bool in_doubt = false;
    try {
      author_.act(desk->store);
    } catch (const CommitInDoubt&) {
      in_doubt = true;
    } catch (const RollBack&) {
    } catch (const ConcurrencyConflict&) {
    } catch (const UsageError&) {
    } catch (const StoreBusy& e) {
      if (!faulty && !other_is_open_) ADD_FAILURE() << "nobody else is writing: " << e.what();
    } catch (const Error& e) {
      if (!faulty) ADD_FAILURE() << "without any fault: " << e.what();
    }
    faults_.disarm();
    if (!in_doubt) return;
    doubts_ = true;
    author_.doubt();
    take_notices(*desk);
    reopen(desk);
  }

  void arm() {
    static const std::vector<std::vector<FileOperation>> operations{
        {FileOperation::write},
        {FileOperation::sync},
        {FileOperation::read},
        {FileOperation::shm_lock},
        {FileOperation::write, FileOperation::sync}};
    faults_.arm({operations[static_cast<std::size_t>(author_.up_to(4))],
                 author_.one_in(2) ? test::Verdict::io_error : test::Verdict::disk_full,
                 1 + author_.up_to(6), author_.one_in(3)});
  }

  void reopen(std::unique_ptr<Desk>& desk) {
    desk.reset();
    desk = std::make_unique<Desk>(path_, vfs_.name());
  }

  // --- what is done by the other process

  void step_of_other() {
    if (std::exchange(other_is_open_, false)) {
      if (author_.one_in(3)) return start_other();
      return tell(author_.one_in(2) ? "commit" : "roll back");
    }
    switch (author_.up_to(6)) {
      case 0:
      case 1:
        return tell("begin");
      case 2:
      case 3:
        return tell("die " + std::to_string(1 + author_.up_to(4)));
      default:
        return tell("act");
    }
  }

  /// Another one, after the death of the one before.
  void start_other() {
    other_.reset();
    ++others_;
    other_ = std::make_unique<OtherProcess>(path_, seed_ * 1000 + others_,
                                            "other" + std::to_string(others_));
    is_new_ = true;
  }

  void tell(const std::string& command) {
    const std::string answer = other_->ask(command);
    if (answer.empty()) {
      EXPECT_TRUE(command.starts_with("die ")) << "it died of: " << command;
      ++deaths_;
      return start_other();
    }
    other_is_open_ = answer == "open";
    std::istringstream lines{answer};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("failed") || line.starts_with("flaw")) ADD_FAILURE() << answer;
      if (!line.starts_with("heard ")) continue;
      const std::size_t page = line.find(' ', 6) + 1;
      heard_[std::stoll(line.substr(6))] = line.substr(page);
    }
  }

  // --- what must hold

  void check() {
    // Only a reader needn't wait for whoever writes.
    auto store = sqlite::open(path_, {.read_only = other_is_open_});
    EXPECT_EQ(author_.flaw(store), "");
    check_rows(store);
    for (auto& desk : desks_) take_notices(*desk);
    auto stored = test::pages_of(store);
    if (is_new_) add_unheard(stored);
    if (doubts_) {
      for (const auto& [at, page] : heard_) EXPECT_EQ(stored[at], page) << "heard of event " << at;
    } else {
      EXPECT_EQ(heard_, stored);
    }
    if (!other_is_open_ && (is_new_ || author_.one_in(8))) compare_with_other(store);
  }

  void take_notices(Desk& desk) { heard_.merge(desk.take_heard()); }

  /// The one that died couldn't tell what it heard.
  void add_unheard(const std::map<std::int64_t, std::string>& stored) {
    for (const auto& [at, page] : stored) {
      if (page.find(":other") != std::string::npos) heard_.emplace(at, page);
    }
  }

  void compare_with_other(Store& store) {
    is_new_ = false;
    std::string expected;
    for (const std::string& line : test::full_lines(store.read_all())) expected += line + '\n';
    EXPECT_EQ(other_->ask("read"), expected);
  }

  void check_rows(Store& store) {
    std::vector<std::string> expected;
    EventDecoder<test::Copies::Events> decoder{Codec::json};
    for (const StoredEvent& event : store.read_all()) {
      if (!decoder.knows(event.kind)) continue;
      decoder.decode(event, [&](const auto& page) { expected.push_back(shown(page)); });
    }
    std::vector<std::string> rows;
    for (const Row row : ModelReader{store}.query("SELECT page FROM copies ORDER BY at")) {
      rows.push_back(std::get<std::string>(row.cell("page")));
    }
    EXPECT_EQ(rows, expected);
  }

  const unsigned seed_;
  const test::TempDir dir_ = test::TempDir::in_memory();
  const std::string path_ = dir_.file("diaries.db");
  test::FailNth faults_;
  test::FaultVfs vfs_{faults_};
  Author author_;
  std::array<std::unique_ptr<Desk>, 2> desks_;
  std::unique_ptr<OtherProcess> other_;
  unsigned others_ = 0;
  bool other_is_open_ = false;
  /// It has read nothing yet.
  bool is_new_ = true;
  std::map<std::int64_t, std::string> heard_;
  bool doubts_ = false;
  int deaths_ = 0;
};

TEST(Outcome, MatchesEveryObjectInMemoryAfterEachStep) {
  int usable = 0;
  int asked = 0;
  int deaths = 0;
  for (unsigned seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{seed};
    for (int step = 0; step < 60 && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      world.step();
    }
    usable += world.usable();
    asked += world.asked();
    deaths += world.deaths();
  }
  // What says nothing says nothing wrong.
  EXPECT_GT(usable, asked / 2);
  EXPECT_GT(deaths, 20);
}

}  // namespace
}  // namespace stela::outcome_property_test
