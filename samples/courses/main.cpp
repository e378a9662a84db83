// A school on the command line: courses school.db define maths 2; … enrol jane; … subscribe maths
// jane.
#include "courses.hpp"

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>

#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace courses {
namespace {

/// How full each course is. Inline: a reader sees it as soon as the command returns.
class Occupancy {
 public:
  static constexpr stela::ProjectorType projector_type{"occupancy", 1};
  using Events = stela::EventSet<CourseDefined, CapacityChanged, Subscribed>;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {occupancy} (course TEXT PRIMARY KEY, capacity INTEGER NOT NULL, "
        "taken INTEGER NOT NULL DEFAULT 0)");
  }
  void project(stela::ReadModel& model, const stela::Recorded<CourseDefined>& event) {
    model.execute("INSERT INTO {occupancy} (course, capacity) VALUES (?1, ?2)", event->course.key(),
                  event->capacity);
  }
  void project(stela::ReadModel& model, const stela::Recorded<CapacityChanged>& event) {
    model.execute("UPDATE {occupancy} SET capacity = ?2 WHERE course = ?1", event->course.key(),
                  event->capacity);
  }
  void project(stela::ReadModel& model, const stela::Recorded<Subscribed>& event) {
    model.execute("UPDATE {occupancy} SET taken = taken + 1 WHERE course = ?1",
                  event->course.key());
  }
};

void enrol(stela::Store& store, const StudentId& id, const std::string& name) {
  stela::retry([&] {
    stela::UnitOfWork unit{store};
    Student* const known = unit.find(id);
    (known != nullptr ? *known : unit.add(Student{id})).enrol(name);
    unit.commit();
  });
}

void show(stela::Store& store) {
  // The table has what a course's pages would show. This lists what a decision reads.
  for (const stela::StoredEvent& event : store.read_all({.with_tags = true})) {
    std::cout << event.sequence.value() << ' ' << event.stream.name() << ' ' << event.type() << ' '
              << event.tags << '\n';
  }
  std::cout << stela::OutboxOperations{store}.status().pending << " messages are pending\n";
}

int run(std::span<const std::string> words) {
  const std::string usage =
      "courses DATABASE define COURSE CAPACITY | capacity COURSE CAPACITY | enrol STUDENT | "
      "subscribe COURSE STUDENT | show\n";
  if (words.size() < 2) {
    std::cerr << usage;
    return 2;
  }
  stela::Store store = stela::open(words[0]);
  const stela::Outbox outbox{store};
  stela::Projections projections{store};
  projections.add_inline(Occupancy{});
  const std::string& command = words[1];
  if (command == "define" && words.size() == 4) {
    stela::decide(store, DefineCourse{CourseId::from(words[2]), std::stoll(words[3])});
  } else if (command == "capacity" && words.size() == 4) {
    stela::decide(store, ChangeCapacity{CourseId::from(words[2]), std::stoll(words[3])});
  } else if (command == "enrol" && words.size() == 3) {
    enrol(store, StudentId::from(words[2]), words[2]);
  } else if (command == "subscribe" && words.size() == 4) {
    const auto student = StudentId::from(words[3]);
    // Students stay registered, so this can be checked before the decision.
    if (!stela::Repository<Student>{store}.find(student)) {
      throw Refused{"there is no student \"" + words[3] + "\""};
    }
    stela::decide(store, Subscribe{CourseId::from(words[2]), student});
  } else if (command == "show" && words.size() == 2) {
    show(store);
  } else {
    std::cerr << usage;
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace courses

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return courses::run(words);
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
