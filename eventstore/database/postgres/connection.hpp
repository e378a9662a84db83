// A connection to PostgreSQL: statements one by one, or several in one round trip.
#pragma once

#include "database/connection.hpp"
#include "database/owner.hpp"
#include "database/postgres/failure.hpp"
#include "database/postgres/parameters.hpp"
#include "database/postgres/prepared_texts.hpp"
#include "database/postgres/result.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/postgres.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela::postgres {

struct ConnectionOptions {
  /// As PostgreSQL takes it: "postgresql://app@db1,db2/shop", "host=… dbname=…".
  std::string conninfo = {};
  /// The schema of Stela's tables.
  std::string schema = "stela";
  /// Where SQL of the user's makes its tables; empty: where the search_path says.
  std::string sql_schema = {};
  /// For each host.
  std::chrono::milliseconds connect_timeout{5000};
  /// A server that says nothing for longer has lost the connection.
  std::chrono::milliseconds reply_timeout{30000};
  /// How long to try again, with growing pauses, when a server that was reached before can't be: it
  /// may be started again, or a standby promoted.
  std::chrono::milliseconds patience{0};
  /// Of several hosts a standby will do if there is no primary. Otherwise it is the primary. Unless
  /// the string says what else.
  bool is_read_only = false;
  /// Behind a pooler that gives a session away after each transaction: nothing is prepared, and
  /// nothing is set for a session.
  bool is_pooled = false;
  /// Set once SQL of somebody else's was seen to drop what was prepared, or to prepare something of
  /// the same name: whoever has a copy of these options prepares nothing any more.
  std::shared_ptr<std::atomic<bool>> prepares_nothing = std::make_shared<std::atomic<bool>>(false);
};

class Statement;

/// Whatever fails is thrown as the exception that says what to do. No wait is without an end, but
/// for that of a hanging resolver of names. In a forked child everything ends in UsageError.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Connection final : public database::Connection {
 public:
  /// StoreFailed if the server refuses the user, has another encoding than UTF-8 or is too old;
  /// StoreBusy if it can't be reached, or has no connection left.
  explicit Connection(const ConnectionOptions& options);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs one statement, whose parameters are written $1, $2 … Its tables are named by "stela.".
  /// Prepared if it comes again.
  Result query(std::string_view sql, Parameters parameters = {},
               std::string_view doing = "a statement");

  /// Several statements in one round trip. After one that fails, those behind it aren't run.
  class STELA_EVENTSTORE_EXPORT Pipeline {
   public:
    explicit Pipeline(Connection& connection) noexcept : connection_{connection} {}
    /// `sql` must outlive `run`, and so must what the parameters refer to.
    void add(std::string_view sql, Parameters parameters = {}) {
      steps_.push_back({sql, std::move(parameters), false});
    }
    /// One of the user's, as `query_text`.
    void add_user(std::string_view sql, Parameters parameters) {
      steps_.push_back({sql, std::move(parameters), true});
    }
    std::size_t size() const noexcept { return steps_.size(); }
    /// What is added from here on is another part: the server commits what is before it, and
    /// answers that, before it begins with this.
    void end_part() { end_of_first_ = steps_.size(); }
    /// Sends all steps. The results of the first part in their order: an error, and aborted ones
    /// behind it, among them. ConnectionLost if the answers don't come. If there is another part,
    /// the connection is busy until `run_rest` has returned.
    std::vector<Result> run();
    /// The same, and throws what the first error says. It gives the connection up then, if there
    /// is another part, whose answer nobody reads.
    std::vector<Result> run_all(std::string_view doing);
    /// Waits for the second part, and throws what the first error in it says.
    void run_rest(std::string_view doing);

   private:
    struct Step {
      std::string_view sql;
      Parameters parameters;
      bool is_users;
      /// Null if it isn't to be prepared.
      PreparedTexts::Text* text = nullptr;
      bool is_new = false;
    };
    /// Sends it; its preparation before it, if it has one.
    void send(Step& step);
    bool has_rest() const noexcept { return end_of_first_ < steps_.size(); }
    std::span<Step> first_part() noexcept {
      return std::span{steps_}.first(std::min(end_of_first_, steps_.size()));
    }
    /// One result for each step of a part, which also answers `others`: they come last.
    std::vector<Result> read(std::span<Step> part, std::size_t others);
    /// Of `results` with those of preparations.
    std::vector<Result> results_of_steps(std::span<Step> part, std::vector<Result> results);

    Connection& connection_;
    std::vector<Step> steps_;
    std::size_t end_of_first_ = std::numeric_limits<std::size_t>::max();
  };

  /// Text without parameters, maybe several statements.
  void execute(const std::string& sql) override;
  /// One of the user's, whose rows come as text. Prepared if it comes again, unless `scope` is
  /// empty: the search_path by which its names are found. The result may be an error.
  Result query_users(const std::string& sql, std::string_view scope, Parameters parameters);
  /// One statement of the user's: its rows come as text.
  Result query_text(const std::string& sql, Parameters parameters);

  database::DatabaseName database() const noexcept override { return {nullptr, place_}; }
  bool in_transaction() const noexcept override;
  Uuid run() const noexcept override { return run_; }
  void set_run(const Uuid& run) noexcept { run_ = run; }
  /// Ends the transaction, if it is in one. What fails then ends the connection.
  void roll_back() noexcept;
  /// Throws what `result` means, an error that ended `doing`.
  [[noreturn]] void fail(const PGresult* result, std::string_view doing);
  /// False once it is lost.
  bool is_usable() const noexcept { return !is_lost_ && owner_.is_this(); }
  /// Looks, without a round trip, whether the server has ended it while it was idle: false then,
  /// and it is lost.
  bool is_alive() noexcept;
  /// It may be used no more.
  void give_up() noexcept { is_lost_ = true; }

  using Time = std::chrono::steady_clock::time_point;
  /// Hears of the silence of a server whose answer is awaited.
  class Silence {
   public:
    virtual ~Silence() = default;
    /// Until when to wait before this is called again. The connection is lost if that has passed;
    /// otherwise it would be at `deadline`.
    virtual Time wait_until(Time deadline) = 0;
  };
  /// Null: nobody. It must outlive what is asked meanwhile.
  void tell_of_silence(Silence* silence) noexcept { silence_ = silence; }
  /// Asks the server to cancel what it does for this connection, by another one. What is awaited is
  /// answered then, maybe with an error.
  void cancel() noexcept;

  /// What the server warned of since it was asked last.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  /// Where SQL of the user's finds its tables: in its own schema, and in those of the search_path
  /// that the connection had at first, but for Stela's.
  const std::string& users_path() const noexcept { return users_path_; }
  void set_users_path(std::string path) { users_path_ = std::move(path); }
  /// SQL of the user's has run in the transaction: what it set for the session may outlive it.
  bool ran_users_sql() const noexcept { return ran_users_sql_; }
  void note_users_sql(bool ran) noexcept { ran_users_sql_ = ran; }
  /// True of a server that replays another's log.
  bool is_standby() const noexcept;
  const ConnectionOptions& options() const noexcept { return options_; }
  /// What a store's first connection finds out for all of them.
  void learn(bool is_pooled, std::string sql_schema) {
    options_.is_pooled = is_pooled;
    options_.sql_schema = std::move(sql_schema);
  }
  PGconn* handle() const noexcept { return connection_.get(); }

 private:
  friend class Statement;
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  void check_server() const;
  /// UsageError if somebody's SQL has changed the encoding, in which names would be stored wrongly.
  void check_encoding() const;
  /// Before anything is sent: the deadline of the answer.
  Time begin();
  void send(std::string_view sql, Parameters& parameters);
  /// One of the user's: its rows come as text.
  void send_user(const std::string& sql, Parameters& parameters);
  void send_prepared(const std::string& name, Parameters& parameters, bool as_text = false);
  void send_prepare(const std::string& name, const std::string& sql, const std::vector<Oid>& types);
  bool may_prepare() const noexcept { return !options_.is_pooled && !*options_.prepares_nothing; }
  /// How many statements it sends that make the server forget others.
  std::size_t send_dropped(const PreparedTexts& texts);
  /// What is prepared of one of Stela's own statements, or is to be; null: nothing yet. It is
  /// prepared anew from time to time: a plan that was made while a table was small reads all of it.
  PreparedTexts::Text* own_text(std::string_view sql, const Parameters& parameters, Time now);
  /// Forgets what is no longer prepared as it was.
  void note_failure(const Result& failed, const PreparedTexts::Text* text = nullptr);
  /// Sends what libpq still holds back, and reads meanwhile.
  void flush(Time deadline);
  void wait(short events, Time deadline);
  /// The next result; none at the end of a statement.
  Result next(Time deadline);
  /// The only result of what was sent.
  Result finish(std::string_view doing, const PreparedTexts::Text* text = nullptr);
  /// The results up to the next Sync of a pipeline, and behind them the error of the commit there,
  /// if it failed.
  std::vector<Result> finish_part(std::size_t count);
  std::vector<Result> finish_pipeline(std::size_t count);
  void prepare(const std::string& name, std::string_view sql, const std::vector<Oid>& types);
  [[noreturn]] void lose(std::string why);
  database::Statement& prepared(std::string_view, std::string_view sql) override;
  static void note(void* self, const PGresult* result) noexcept;

  const database::OwningProcess owner_;
  ConnectionOptions options_;
  const std::string place_;
  std::unique_ptr<PGconn, Finish> connection_;
  bool is_lost_ = false;
  Silence* silence_ = nullptr;
  Uuid run_ = {};
  int names_ = 0;
  bool has_prepared_ = false;
  std::vector<std::string> warnings_;
  std::string users_path_;
  bool ran_users_sql_ = false;
  std::unordered_map<const char*, std::unique_ptr<Statement>> statements_;
  PreparedTexts own_texts_{"stela_own_"};
  PreparedTexts users_texts_{"stela_user_"};
};

/// Where Stela's own statements find its tables.
STELA_EVENTSTORE_EXPORT std::string own_path(std::string_view schema);

/// The PostgreSQL connection that `connection` is: for code that is written for this engine.
inline Connection& connection_of(database::Connection& connection) noexcept {
  return static_cast<Connection&>(connection);
}

}  // namespace stela::postgres
