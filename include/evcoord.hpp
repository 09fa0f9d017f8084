/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evcoord for C++17, and for C++20 where the compiler has more: a header over
 * <evcoord.h>, without a library of its own.  evcoord-cxx(7) is its manual.
 *
 * Rules that hold everywhere:
 *   - A constructor throws nothing of ours: a refused object is empty, made()
 *     has the reason, and a call on an empty object is refused.  Because the
 *     C++ coordinator has EVC_STRICT_SETUP, a refused set-up is also an error
 *     of the coordinator, and stops the program.
 *   - A call returns a status, which the compiler wants to be used.  value()
 *     turns a status that is not ok into the exception evcoord::error.
 *   - An exception that leaves a function of the program's becomes evc_fail of
 *     its coordinator, with the member's name, the type and what().  The end of
 *     a thread (pthread_exit, a cancellation) passes.
 *   - A callable is moved to the library, and destroyed exactly once.
 *   - A destructor does not fail, and waits for a limited time at most.
 */
#ifndef EVCOORD_HPP
#define EVCOORD_HPP

#include <evcoord.h>

#if __cplusplus < 201703L
#error "evcoord.hpp needs C++17"
#endif

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <cxxabi.h>
#include <poll.h>

#if defined __has_include
#if __has_include(<version>)
#include <version>
#endif
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif
#if defined __cpp_impl_coroutine && defined __cpp_lib_coroutine
#include <coroutine>
#define EVCOORD_COROUTINES 1
#endif

#ifdef __cpp_exceptions
#define EVCOORD_EXCEPTIONS 1
#define EVCOORD_TRY_ try
#else
#define EVCOORD_TRY_
#endif

/* A constructor whose object may not be dropped at once; g++ does not look at
   the attribute of the class. */
#if __has_cpp_attribute(nodiscard) >= 201907L
#define EVCOORD_KEEP_ [[nodiscard]]
#else
#define EVCOORD_KEEP_
#endif

namespace evcoord {

/* ---- status ---- */

/* The codes of evcoord/types.h; 17..255 are the program's own:
   static_cast<code>(17). */
enum class code : int {
	ok = EVC_OK,
	cancelled = EVC_CANCELLED,
	unknown = EVC_UNKNOWN,
	invalid_argument = EVC_INVALID_ARGUMENT,
	deadline_exceeded = EVC_DEADLINE_EXCEEDED,
	not_found = EVC_NOT_FOUND,
	already_exists = EVC_ALREADY_EXISTS,
	permission_denied = EVC_PERMISSION_DENIED,
	resource_exhausted = EVC_RESOURCE_EXHAUSTED,
	failed_precondition = EVC_FAILED_PRECONDITION,
	aborted = EVC_ABORTED,
	out_of_range = EVC_OUT_OF_RANGE, /* end of input: clean */
	unimplemented = EVC_UNIMPLEMENTED,
	internal = EVC_INTERNAL,
	unavailable = EVC_UNAVAILABLE,
	data_loss = EVC_DATA_LOSS,
	unauthenticated = EVC_UNAUTHENTICATED
};

using verdict = evc_verdict;
using reason = evc_reason;
using member_info = evc_member_info;

/* The exception of value(). */
class error : public std::runtime_error {
public:
	/* No error is ok. */
	error(enum code k, const std::string &text)
		: std::runtime_error(text),
		  code_(k == code::ok ? code::unknown : k) {}

	enum code code() const noexcept { return code_; }

private:
	enum code code_;
};

/*
 * The answer of a call: ok; a code that was reported; or refused, and then
 * nothing has changed.
 */
class [[nodiscard]] status {
public:
	constexpr status() noexcept = default;
	constexpr status(evc_status st) noexcept : st_(st) {}
	constexpr status(enum code k) noexcept : st_(static_cast<int>(k)) {}
	/* A bool does not say which. */
	status(bool) = delete;

	constexpr bool ok() const noexcept { return st_ == 0; }
	constexpr explicit operator bool() const noexcept { return st_ == 0; }
	constexpr bool refused() const noexcept { return st_ < 0; }
	/* The code, positive for a refusal, too. */
	constexpr enum code
	code() const noexcept
	{
		return static_cast<enum code>(st_ < 0 ? -st_ : st_);
	}
	/* As the calls in C have it. */
	constexpr evc_status get() const noexcept { return st_; }
	const char *name() const noexcept { return evc_status_name(st_); }
	/* Why the last call of this thread was refused; "" when this status is
	   no refusal. */
	const char *
	message() const noexcept { return refused() ? evc_last_error() : ""; }
	/* Of a join: 0; 124 when members were still there at its end; 1 for
	   all else. */
	constexpr int
	exit_code() const noexcept
	{
		return st_ == 0 ? 0 : st_ == EVC_DEADLINE_EXCEEDED ? 124 : 1;
	}
	/* Throw an error unless this status is ok. */
	void
	value() const;

	friend constexpr bool
	operator==(status a, status b) noexcept { return a.st_ == b.st_; }
	friend constexpr bool
	operator!=(status a, status b) noexcept { return a.st_ != b.st_; }
	friend constexpr bool
	operator==(status a, enum code k) noexcept { return a.code() == k; }
	friend constexpr bool
	operator!=(status a, enum code k) noexcept { return a.code() != k; }

private:
	evc_status st_ = 0;
};

inline void
status::value() const
{
	if (ok())
		return;
#ifdef EVCOORD_EXCEPTIONS
	throw error(code(), refused() ? message() : name());
#else
	std::abort();
#endif
}

/* A T, or the status that says why there is none. */
template <class T>
class [[nodiscard]] result {
	struct none {
		none() = delete;
	};

public:
	/* A status says why there is no T, also where T is one. */
	result(std::conditional_t<std::is_same_v<T, evcoord::status>, none, T>
	       v) : v_(std::move(v)) {}
	result(std::in_place_t, T &&v) : v_(std::move(v)) {}
	result(evcoord::status st) noexcept
		: st_(st.ok() ? evcoord::status(EVC_UNKNOWN) : st) {}
	template <class K, class = std::enable_if_t<
		std::is_same_v<K, enum code> && !std::is_same_v<T, K>>>
	result(K k) noexcept : result(evcoord::status(k)) {}

	bool ok() const noexcept { return v_.has_value(); }
	explicit operator bool() const noexcept { return ok(); }
	evcoord::status status() const noexcept { return st_; }
	T &operator*() & noexcept { return *v_; }
	const T &operator*() const & noexcept { return *v_; }
	T &&operator*() && noexcept { return std::move(*v_); }
	T *operator->() noexcept { return &*v_; }
	const T *operator->() const noexcept { return &*v_; }
	T &value() & { return st_.value(), *v_; }
	const T &value() const & { return st_.value(), *v_; }
	T value() && { return st_.value(), std::move(*v_); }

private:
	evcoord::status st_;
	std::optional<T> v_;
};

/* Seconds: a number, or a duration of std::chrono. */
class seconds {
public:
	template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
	constexpr seconds(N s) noexcept : s_(static_cast<double>(s)) {}
	template <class R, class P>
	constexpr seconds(std::chrono::duration<R, P> d) noexcept
		: s_(std::chrono::duration<double>(d).count()) {}

	constexpr operator double() const noexcept { return s_; }

private:
	double s_;
};

constexpr double forever = HUGE_VAL;

/* ---- flags: each kind is accepted where its struct takes it ---- */

enum class config_flag : unsigned {
	no_clean_codes = EVC_NO_CLEAN_CODES,
	no_home = EVC_NO_HOME, /* scopes */
	kick_restore = EVC_KICK_RESTORE
};
enum class thread_flag : unsigned {
	background = EVC_BACKGROUND,
	end_stops = EVC_END_STOPS,
	after_stop = EVC_AFTER_STOP,
	watched = EVC_WATCHED,
	kick = EVC_KICK,
	own_scope = EVC_OWN_SCOPE,
	may_be_refused = EVC_MAY_BE_REFUSED
};
enum class looper_flag : unsigned {
	background = EVC_BACKGROUND,
	end_stops = EVC_END_STOPS,
	after_stop = EVC_AFTER_STOP,
	watched = EVC_WATCHED,
	own_thread = EVC_OWN_THREAD,
	paused = EVC_PAUSED,
	flush = EVC_FLUSH,
	kick = EVC_KICK,
	may_be_refused = EVC_MAY_BE_REFUSED
};
enum class hook_flag : unsigned {
	on_drain = EVC_ON_DRAIN,
	may_be_refused = EVC_MAY_BE_REFUSED
};
enum class guard_flag : unsigned {
	end_stops = EVC_END_STOPS,
	kick = EVC_KICK
};
enum class hold_flag : unsigned {
	background = EVC_BACKGROUND,
	end_stops = EVC_END_STOPS,
	after_stop = EVC_AFTER_STOP,
	may_be_refused = EVC_MAY_BE_REFUSED
};
enum class task_flag : unsigned {
	after_stop = EVC_AFTER_STOP,
	tell_after_stop = EVC_TELL_AFTER_STOP
};
enum class join_flag : unsigned {
	stop_first = EVC_JOIN_STOP_FIRST,
	ignore_live = EVC_JOIN_IGNORE_LIVE,
	strict = EVC_JOIN_STRICT
};
enum class signals_flag : unsigned {
	third_exits = EVC_SIGNALS_THIRD_EXITS,
	ignored_too = EVC_SIGNALS_IGNORED_TOO,
	at_join = EVC_SIGNALS_AT_JOIN
};
enum class pool_flag : unsigned { finish = EVC_POOL_FINISH };
enum class queue_flag : unsigned { drain = EVC_QUEUE_DRAIN };
enum class watch_flag : unsigned { background = EVC_BACKGROUND };
enum class cancel_flag : unsigned { repeat = EVC_CANCEL_REPEAT };

template <class E> struct is_flag : std::false_type {};
template <> struct is_flag<config_flag> : std::true_type {};
template <> struct is_flag<thread_flag> : std::true_type {};
template <> struct is_flag<looper_flag> : std::true_type {};
template <> struct is_flag<hook_flag> : std::true_type {};
template <> struct is_flag<guard_flag> : std::true_type {};
template <> struct is_flag<hold_flag> : std::true_type {};
template <> struct is_flag<task_flag> : std::true_type {};
template <> struct is_flag<join_flag> : std::true_type {};
template <> struct is_flag<signals_flag> : std::true_type {};
template <> struct is_flag<pool_flag> : std::true_type {};
template <> struct is_flag<queue_flag> : std::true_type {};
template <> struct is_flag<watch_flag> : std::true_type {};
template <> struct is_flag<cancel_flag> : std::true_type {};

template <class E, std::enable_if_t<is_flag<E>::value, int> = 0>
constexpr E
operator|(E a, E b) noexcept
{
	return static_cast<E>(static_cast<unsigned>(a) |
			      static_cast<unsigned>(b));
}
template <class E, std::enable_if_t<is_flag<E>::value, int> = 0>
constexpr E &
operator|=(E &a, E b) noexcept { return a = a | b; }
template <class E, std::enable_if_t<is_flag<E>::value, int> = 0>
constexpr bool
operator&(E a, E b) noexcept
{
	return (static_cast<unsigned>(a) & static_cast<unsigned>(b)) != 0;
}

/* What a looper does about boundaries that it has missed. */
enum class missed : unsigned {
	skip = EVC_MISSED_SKIP,
	burst = EVC_MISSED_BURST,
	delay = EVC_MISSED_DELAY
};
constexpr missed
missed_at_most(unsigned n) noexcept
{
	/* The macro casts: of another type than its own. */
	return static_cast<missed>(EVC_MISSED_AT_MOST(1ULL * n));
}

enum class on_error : unsigned {
	stop = EVC_ON_ERROR_STOP,
	report = EVC_ON_ERROR_REPORT,
	ignore = EVC_ON_ERROR_IGNORE
};

enum class log_level : int {
	error = EVC_LOG_ERROR,
	warning = EVC_LOG_WARNING,
	info = EVC_LOG_INFO
};

/* ---- calls of the program's functions ---- */

class coord_ref;
class reactor_ref;

namespace detail {

inline const char *
or_empty(const char *s) noexcept { return s != nullptr ? s : ""; }

inline void
ignore(evc_status) noexcept {}

inline void
free_left() noexcept;

/* The answer of a call that may have run a loop, and so a function that has
   destroyed a coordinator. */
inline status
after_run(evc_status st) noexcept
{
	if (st >= 0)
		free_left();
	return st;
}

/* The last error that this thread has reported here: a function that returns
   the code of its error, or throws it by value(), adds no second one. */
struct reported {
	evc_coord *c;
	evc_status code;

	/* An older coordinator may have had the address of this one. */
	bool
	is(evc_coord *to, evc_status k) const noexcept
	{
		return c == to && code == k &&
		       evc_raise_requested(to, nullptr) > 0;
	}
};
inline thread_local reported last_reported{ nullptr, 0 };

inline evc_status
report(evc_coord *c, evc_status k, int err, const char *file, int line,
       const char *func, const std::string &text) noexcept
{
	k = evc_fail_at(c, k, err, file, line, func, "%s", text.c_str());
	last_reported = { c, k };
	return k;
}

#ifdef EVCOORD_EXCEPTIONS
/* The type of the exception that is being handled, without what
   std::throw_with_nested puts around it. */
inline std::string
type_handled()
{
	const std::type_info *t = abi::__cxa_current_exception_type();
	int bad = -1;
	std::unique_ptr<char, void (*)(void *)> full(t == nullptr ? nullptr
		: abi::__cxa_demangle(t->name(), nullptr, nullptr, &bad),
		std::free);
	std::string name = full != nullptr ? full.get()
			   : t != nullptr  ? t->name()
					   : "a foreign exception";

	for (const char *around : { "std::_Nested_exception<",
				    "std::__1::__nested<" })
		if (name.rfind(around, 0) == 0) {
			name.erase(0, std::strlen(around)).pop_back();
			name.erase(name.find_last_not_of(' ') + 1);
		}
	return name;
}

/* What an exception says, and what those say that are nested in it. */
struct told {
	evc_coord *c;
	std::string text;
	int err = 0;		  /* the first errno */
	evc_status code = EVC_OK; /* of the first one that is an error of c */
	bool by_value = false;	  /* the last one has a code for a text */

	bool
	is_error() const noexcept
	{
		return code != 0 && (c == nullptr || !evc_is_clean(c, code));
	}
	/* Add the exception that is being handled; the result is the one that
	   is nested in it. */
	std::exception_ptr
	add(bool with_type)
	{
		evc_status k = EVC_ABORTED;
		std::string what = "not a std::exception";
		std::exception_ptr inner;

		try {
			throw;
		} catch (const std::exception &e) {
			what = or_empty(e.what());
		} catch (...) {
			with_type = true;
		}
		if (with_type)
			text += type_handled() + ": ";
		text += what;
		try {
			throw;
		} catch (const error &e) {
			k = static_cast<int>(e.code());
			by_value = what == evc_status_name(k);
		} catch (const std::bad_alloc &) {
			k = EVC_RESOURCE_EXHAUSTED;
		} catch (const std::system_error &e) {
			if (err == 0 &&
			    (e.code().category() == std::generic_category() ||
			     e.code().category() == std::system_category()))
				err = e.code().value();
		} catch (...) {
		}
		if (!is_error())
			code = k;
		try {
			throw;
		} catch (const std::nested_exception &e) {
			inner = e.nested_ptr();
		} catch (...) {
		}
		return inner;
	}
	/* As far as a reason has room. */
	void
	add_nested(std::exception_ptr e)
	{
		while (e != nullptr &&
		       (text.size() < sizeof evc_reason{}.text || !is_error()))
			try {
				std::rethrow_exception(e);
			} catch (...) {
				text += ": ";
				e = add(false);
			}
	}
};

/* The exception that is being handled, as an error of c, unless c is gone; the
   result is its code.  An error of value() with a clean code is no error. */
inline evc_status
report_exception(evc_coord *c, const char *name) noexcept
{
	told t{ c, {} }; /* what() may end with the exception */

	try {
		t.text = std::string(name) + ": ";
		auto inner = t.add(true);

		t.add_nested(inner);
		if (c == nullptr || !t.is_error() ||
		    (inner == nullptr && t.by_value &&
		     last_reported.is(c, t.code)))
			return t.code;
		return (evc_fail)(c, t.code, t.err, "%s", t.text.c_str());
	} catch (...) {
		return (evc_fail)(c, t.is_error() ? t.code
						  : evc_status{ EVC_ABORTED },
				  t.err, "%s: an exception", name);
	}
}
#endif

/* f(), and an exception becomes an error of c.  The end of a thread passes: it
   is caught as a reference to nothing. */
template <class F>
__attribute__((no_sanitize("null"))) evc_status
caught(evc_coord *c, const char *name, F &&f)
{
	(void)c, (void)name;
	EVCOORD_TRY_ {
		return std::forward<F>(f)();
	}
#ifdef EVCOORD_EXCEPTIONS
#ifdef __GLIBCXX__
	catch (abi::__forced_unwind &) {
		throw;
	}
#endif
	catch (...) {
		return report_exception(c, name);
	}
#endif
}

/* The same of a function that a thread calls again and again: what another call
   has reported is no error of this one. */
template <class F>
evc_status
caught_anew(evc_coord *c, const char *name, F &&f)
{
	last_reported.c = nullptr;
	return caught(c, name, std::forward<F>(f));
}

/* The same where no thread may end: on a loop, on the helper thread. */
template <class F>
evc_status
caught_here(evc_coord *c, const char *name, F &&f) noexcept
{
	(void)c, (void)name;
	EVCOORD_TRY_ {
		return std::forward<F>(f)();
	}
#ifdef EVCOORD_EXCEPTIONS
	catch (...) {
		return report_exception(c, name);
	}
#endif
}

/* A result that says how the function went. */
template <class R>
constexpr bool is_answer = std::is_same_v<std::decay_t<R>, status> ||
			   std::is_same_v<std::decay_t<R>, enum code>;

/* f(a...) as a status; a function without a result is fine when it returns. */
template <class F, class... A>
evc_status
answer(F &f, A &&...a)
{
	using R = std::invoke_result_t<F &, A...>;

	if constexpr (std::is_void_v<R>) {
		std::invoke(f, std::forward<A>(a)...);
		return EVC_OK;
	} else {
		static_assert(is_answer<R>,
			      "a function given to evcoord returns void, an "
			      "evcoord::code or an evcoord::status; what a "
			      "call in C returns is made one by "
			      "evcoord::status(...)");
		return status(std::invoke(f, std::forward<A>(a)...)).get();
	}
}

/* f(a), or f() when it takes nothing. */
template <class F, class A>
evc_status
answer_with(F &f, A &&a)
{
	if constexpr (std::is_invocable_v<F &, A>)
		return answer(f, std::forward<A>(a));
	else
		return answer(f);
}

/* The answer of a function that is no member: a code that is not clean is an
   error of c; of nobody when c is gone. */
inline void
hear(evc_coord *c, const char *name, status answer)
{
	evc_status k = static_cast<int>(answer.code());

	if (!answer && c != nullptr && !evc_is_clean(c, k) &&
	    !last_reported.is(c, k))
		ignore((evc_fail)(c, k, 0, "%s: %s", name, answer.name()));
}

/* f() on a loop or on the helper thread; an exception is an error of c, and the
   answer is heard. */
template <class F>
void
heard(evc_coord *c, const char *name, F &&f) noexcept
{
	last_reported.c = nullptr;
	ignore(caught_here(c, name, [&] {
		return hear(c, name, answer(f)), EVC_OK;
	}));
}

/* Destroy p; what its destructor throws is an error of c. */
template <class P>
evc_status
destroy(evc_coord *c, const char *name, P *p) noexcept
{
	return caught_here(c, name, [&] { return delete p, EVC_OK; });
}

/* After a call that takes *p: the library has it, unless the call was
   refused. */
template <class P>
void
give(status st, evc_coord *c, const char *name, std::unique_ptr<P> &p) noexcept
{
	P *block = p.release();

	if (!st)
		ignore(destroy(c, or_empty(name), block));
}

/* Between a handle and the library: who comes last destroys the block. */
struct shared {
	std::atomic<int> users{ 2 };
	std::atomic<bool> gone{ false }; /* the library calls nothing more */
	evc_coord *c = nullptr;
	evc_id id = 0;
	std::string name;

	shared(evc_coord *coord, const char *n) : c(coord), name(or_empty(n)) {}
	shared(const shared &) = delete;
	virtual ~shared() = default;
	virtual void drop_function() noexcept = 0;

	void
	leave() noexcept
	{
		if (users.fetch_sub(1, std::memory_order_acq_rel) == 1)
			delete this;
	}
	/* The library's last touch. */
	void
	release() noexcept
	{
		drop_function();
		gone.store(true, std::memory_order_release);
		leave();
	}
	bool
	in_use() const noexcept
	{
		return !gone.load(std::memory_order_acquire);
	}
};

template <class F>
struct shared_function final : shared {
	union {
		F f; /* until drop_function */
	};
	bool dropped = false;

	shared_function(evc_coord *coord, const char *n, F &&fn)
		: shared(coord, n), f(std::move(fn)) {}
	~shared_function() noexcept override { drop_function(); }
	void
	drop_function() noexcept override
	{
		if (!std::exchange(dropped, true))
			ignore(caught_here(c, name.c_str(),
					   [&] { return f.~F(), EVC_OK; }));
	}
	/* evc_fn, and evc_member_opts.release */
	static evc_status
	call(evc_coord *coord, void *arg);
	static void
	released(void *arg) noexcept
	{
		static_cast<shared *>(
			static_cast<shared_function *>(arg))->release();
	}
};

/* A looper or a hook: its destructor takes it out of the register. */
class member {
public:
	member() noexcept = default;
	member(member &&o) noexcept
		: s_(std::exchange(o.s_, nullptr)), made_(o.made_) {}
	member &
	operator=(member &&o) noexcept
	{
		if (this != &o) {
			remove();
			s_ = std::exchange(o.s_, nullptr);
			made_ = o.made_;
		}
		return *this;
	}
	~member() { remove(); }

	status made() const noexcept { return made_; }
	explicit operator bool() const noexcept { return s_ != nullptr; }
	evc_id id() const noexcept { return s_ != nullptr ? s_->id : 0; }
	/* Does the library still call the function? */
	bool in_use() const noexcept { return s_ != nullptr && s_->in_use(); }
	/* As the destructor: after the return the function is not called. */
	void
	remove() noexcept
	{
		if (s_ == nullptr)
			return;
		if (s_->in_use())
			ignore(evc_member_remove(s_->c, s_->id));
		std::exchange(s_, nullptr)->leave();
	}
	/* Leave the member to the coordinator. */
	void
	detach() noexcept
	{
		if (s_ != nullptr)
			std::exchange(s_, nullptr)->leave();
	}

protected:
	/* start(block) gives the function to the library. */
	template <class S, class B>
	void
	make(B *b, S &&start)
	{
		made_ = start(b);
		if (made_.ok()) {
			s_ = b;
		} else {
			b->leave();
			b->leave();
		}
	}
	/* call(c, id), refused when the member is gone. */
	template <class F>
	status
	with(F &&call) const noexcept
	{
		return in_use() ? call(s_->c, s_->id)
				: evc_refuse(-EVC_NOT_FOUND, "no such member");
	}

private:
	shared *s_ = nullptr;
	status made_ = -EVC_NOT_FOUND;
};

} // namespace detail

/* ---- options ---- */

struct thread_options {
	thread_flag flags{};
	std::size_t stack = 0;
	double grace = 0;

	evc_member_opts
	get() const noexcept
	{
		evc_member_opts o{};

		o.flags = static_cast<unsigned>(flags);
		o.stack = stack;
		o.grace = grace;
		return o;
	}
};

struct join_options {
	double grace = 0; /* 0: the config's; EVC_NO_GRACE: none */
	join_flag flags{};

	evc_join_opts
	get() const noexcept
	{
		evc_join_opts o{};

		o.grace = grace;
		o.flags = static_cast<unsigned>(flags);
		return o;
	}
};

struct signals_options {
	std::vector<int> stop{}; /* none: SIGINT and SIGTERM */
	double short_grace = 0;
	signals_flag flags{};
};

/* ---- references: they own nothing, and are as cheap as the pointer ---- */

/* A loop of a coordinator. */
class reactor_ref {
public:
	constexpr reactor_ref() noexcept = default;
	constexpr reactor_ref(evc_reactor *r) noexcept : r_(r) {}

	evc_reactor *get() const noexcept { return r_; }
	explicit operator bool() const noexcept { return r_ != nullptr; }
	struct ev_loop *
	loop() const noexcept { return evc_reactor_loop(r_); }
	bool is_here() const noexcept { return evc_reactor_is_here(r_); }
	inline coord_ref
	coord() const noexcept;
	/* Run the loop until the stop, then until its members have ended.  What
	   a watcher of the program's own throws passes through, and the call
	   can be made again. */
	status
	run() const { return detail::after_run(evc_reactor_run(r_)); }
	status detach() const noexcept { return evc_reactor_detach(r_); }
	/* Run f on the loop, in its next turn: see loop_ref::post. */
	template <class F>
	status
	post(F f) const;
	template <class F>
	status
	post_after_stop(F f) const;

private:
	evc_reactor *r_ = nullptr;
};

/* A thread that the coordinator has started: a number, to ask and to wait. */
class thread {
public:
	thread() noexcept = default;
	thread(evc_coord *c, evc_id id, status made) noexcept
		: c_(c), id_(id), made_(made) {}

	status made() const noexcept { return made_; }
	explicit operator bool() const noexcept { return id_ != 0; }
	evc_id id() const noexcept { return id_; }
	/* Wait for the end, and get the result of the function. */
	result<enum code>
	wait(seconds timeout = forever) const noexcept
	{
		evc_status r = 0, st = evc_member_wait(c_, id_, timeout, &r);

		if (st < 0)
			return status(st);
		return status(r).code();
	}
	/* Stop this thread alone (thread_flag::own_scope). */
	status
	stop(enum code k = code::ok, const char *text = "") const noexcept
	{
		return evc_member_stop(c_, id_, static_cast<int>(k), text);
	}

private:
	evc_coord *c_ = nullptr;
	evc_id id_ = 0;
	status made_ = -EVC_NOT_FOUND;
};

/* A coordinator that somebody else owns. */
class coord_ref {
public:
	constexpr coord_ref() noexcept = default;
	constexpr coord_ref(evc_coord *c) noexcept : c_(c) {}

	constexpr evc_coord *get() const noexcept { return c_; }
	constexpr explicit
	operator bool() const noexcept { return c_ != nullptr; }

	/* ---- the stop ---- */

	/* The same instructions as evc_should_stop. */
	bool should_stop() const noexcept { return evc_should_stop(c_); }
	bool should_drain() const noexcept { return evc_should_drain(c_); }
	void
	request_stop(enum code k = code::ok, const char *text = "",
		     const char *file = __builtin_FILE(),
		     int line = __builtin_LINE(),
		     const char *func = __builtin_FUNCTION()) const noexcept
	{
		detail::ignore(evc_request_stop_at(c_, static_cast<int>(k),
						   text, file, line, func));
	}
	void
	request_stop(const char *text, const char *file = __builtin_FILE(),
		     int line = __builtin_LINE(),
		     const char *func = __builtin_FUNCTION()) const noexcept
	{
		request_stop(code::ok, text, file, line, func);
	}
	/* Report an error; a member may return the result. */
	enum code
	fail(enum code k, int err, const std::string &text,
	     const char *file = __builtin_FILE(),
	     int line = __builtin_LINE(),
	     const char *func = __builtin_FUNCTION()) const noexcept
	{
		return status(detail::report(c_, static_cast<int>(k), err, file,
					     line, func, text)).code();
	}
	enum code
	fail(enum code k, const std::string &text,
	     const char *file = __builtin_FILE(),
	     int line = __builtin_LINE(),
	     const char *func = __builtin_FUNCTION()) const noexcept
	{
		return fail(k, 0, text, file, line, func);
	}
	status
	request_drain(seconds limit, const char *text = "") const noexcept
	{
		return evc_request_drain(c_, limit, text);
	}
	status clear_stop() const noexcept { return evc_clear_stop(c_); }
	bool
	is_clean(enum code k) const noexcept
	{
		return c_ != nullptr && evc_is_clean(c_, static_cast<int>(k));
	}
	bool
	wait_for_stop(seconds timeout = forever) const noexcept
	{
		return evc_wait_for_stop(c_, timeout);
	}
	/* ok when the time is over; cancelled at a stop. */
	status sleep(seconds s) const noexcept { return evc_sleep(c_, s); }
	/* ok when fd can be read (EVC_READ) or written; cancelled at a stop. */
	status
	wait_fd(int fd, unsigned events, seconds timeout = forever)
		const noexcept
	{
		return evc_wait_fd(c_, fd, events, timeout, nullptr);
	}
	int stop_fd() const noexcept { return evc_stop_fd(c_); }
	/* SIGINT and SIGTERM, or those of o.stop, request the stop. */
	status
	signals(const signals_options &o = {}) const noexcept
	{
		evc_signals_opts k{};
		std::size_t n = 0;

		if (o.stop.size() >= sizeof k.stop / sizeof k.stop[0])
			return evc_refuse_setup(c_, __func__, evc_refuse(
				-EVC_INVALID_ARGUMENT, "too many signals"));
		for (int signo : o.stop)
			k.stop[n++] = signo;
		k.short_grace = o.short_grace;
		k.flags = static_cast<unsigned>(o.flags);
		return evc_signals_start(c_, &k);
	}

	/* ---- the join ---- */

	/* Run the home loop to the stop, and join.  What a watcher of the
	   program's own throws passes through both calls, and the call can be
	   made again. */
	status
	run(const join_options &o = {}, verdict *v = nullptr) const
	{
		const evc_join_opts k = o.get();

		return detail::after_run(evc_run(c_, &k, v));
	}
	status
	join(const join_options &o = {}, verdict *v = nullptr) const
	{
		const evc_join_opts k = o.get();

		return detail::after_run(evc_join(c_, &k, v));
	}
	/* Join inside the running loop: f(coord_ref, const verdict &), once; f
	   returns nothing, because the round is over. */
	template <class F>
	status
	join_start(F f, const join_options &o = {}) const;
	bool joined() const noexcept { return evc_joined(c_); }
	/* The first error of the round. */
	std::optional<reason>
	first_error() const noexcept
	{
		reason r;

		if (evc_raise_requested(c_, &r) > 0)
			return r;
		return std::nullopt;
	}
	/* Those that are kept of this round, the first request first. */
	std::vector<reason>
	reasons() const
	{
		std::vector<reason> all;
		reason r;

		while (evc_reason_get(c_, unsigned(all.size()), &r) == 0)
			all.push_back(r);
		return all;
	}
	std::string
	report(unsigned format = EVC_REPORT_TEXT) const
	{
		std::string s;
		std::size_t room = 65536, n;

		/* It may grow from call to call. */
		for (;; room = 2 * n) {
			s.resize(room);
			n = evc_report(c_, format, s.data(), room + 1);
			if (n <= room)
				return s.resize(n), s;
		}
	}

	/* ---- members ---- */

	reactor_ref home() const noexcept { return evc_home(c_); }
	coord_ref parent() const noexcept { return evc_scope_parent(c_); }
	/* Start a thread that runs f(), f(coord_ref), or, in C++20,
	   f(std::stop_token).  f is destroyed on that thread. */
	template <class F>
	evcoord::thread
	thread(const char *name, F f, const thread_options &o = {}) const;
	/* Run f here; an exception or a result requests the stop. */
	template <class F>
	status
	guard(const char *name, F &&f, guard_flag flags = {}) const;
	/* The calling thread, which somebody else joins, becomes a member. */
	status
	register_this_thread(const char *name, const thread_options &o = {})
		const noexcept
	{
		evc_member_opts k = o.get();

		k.flags |= EVC_NOT_JOINED;
		return evc_register_thread(c_, name, pthread_self(), &k,
					   nullptr);
	}
	result<reactor_ref>
	attach(const char *name, struct ev_loop *loop) const noexcept
	{
		evc_reactor *r = nullptr;
		status st = evc_reactor_attach(c_, name, loop, &r);

		if (!st)
			return st;
		return reactor_ref(r);
	}
	/* A loop on a thread of its own: set_up(reactor_ref) begins its
	   members, tear_down() runs when they are gone. */
	template <class S, class T>
	result<reactor_ref>
	reactor(const char *name, S set_up, T tear_down,
		const thread_options &o = {}) const;
	template <class S>
	result<reactor_ref>
	reactor(const char *name, S set_up) const
	{
		return reactor(name, std::move(set_up), [] {});
	}

protected:
	evc_coord *c_ = nullptr;
};

inline coord_ref
reactor_ref::coord() const noexcept { return evc_reactor_coord(r_); }

namespace detail {

template <class F>
evc_status
shared_function<F>::call(evc_coord *coord, void *arg)
{
	auto *self = static_cast<shared_function *>(arg);

	return caught_anew(coord, self->name.c_str(), [&] {
		return answer_with(self->f, coord_ref(coord));
	});
}

#ifdef __cpp_lib_jthread
/* A std::stop_source that a cancel hook of this thread stops. */
class thread_source {
public:
	explicit thread_source(evc_coord *c) : c_(c)
	{
		evc_status st = evc_cancel_push(c, stop, &source_, 0, &id_);

		if (st == -EVC_CANCELLED)
			source_.request_stop();
		else if (st < 0)
			ignore(evc_refuse_setup(c, "stop_token", st));
	}
	~thread_source()
	{
		if (id_ != 0)
			ignore(evc_cancel_pop(c_, id_));
	}
	thread_source(const thread_source &) = delete;
	std::stop_token token() const noexcept { return source_.get_token(); }

private:
	static void
	stop(void *arg) noexcept
	{
		static_cast<std::stop_source *>(arg)->request_stop();
	}

	evc_coord *c_;
	evc_id id_ = 0;
	std::stop_source source_;
};
#endif

template <class F>
struct thread_body {
	F f;
	std::string name;

	static evc_status
	run(evc_coord *c, void *arg)
	{
		struct end {
			evc_coord *c;
			thread_body *p;
			evc_status
			now() noexcept
			{
				auto n = std::move(p->name);

				return destroy(c, n.c_str(),
					       std::exchange(p, nullptr));
			}
			~end()
			{
				if (p != nullptr)
					ignore(now());
			}
		} e{ c, static_cast<thread_body *>(arg) };
		evc_status st = caught(c, e.p->name.c_str(), [&] {
			return e.p->call(c);
		}), left = e.now();

		return st != 0 ? st : left;
	}
	evc_status
	call(evc_coord *c)
	{
#ifdef __cpp_lib_jthread
		if constexpr (std::is_invocable_v<F &, std::stop_token> &&
			      !std::is_invocable_v<F &, coord_ref>) {
			thread_source s(c);

			return answer(f, s.token());
		} else
#endif
			return answer_with(f, coord_ref(c));
	}
};

} // namespace detail

template <class F>
evcoord::thread
coord_ref::thread(const char *name, F f, const thread_options &o) const
{
	using body = detail::thread_body<F>;
	std::unique_ptr<body> p(
		new body{ std::move(f), detail::or_empty(name) });
	const evc_member_opts k = o.get();
	evc_id id = 0;
	status st = evc_thread_start(c_, name, body::run, p.get(), &k, &id);

	detail::give(st, c_, name, p);
	return evcoord::thread(c_, id, st);
}

template <class F>
status
coord_ref::guard(const char *name, F &&f, guard_flag flags) const
{
	struct body {
		std::remove_reference_t<F> *f;
		const char *name;

		static evc_status
		run(evc_coord *c, void *arg)
		{
			auto *p = static_cast<body *>(arg);

			return detail::caught(c, p->name, [&] {
				return detail::answer_with(*p->f,
							   coord_ref(c));
			});
		}
	} b{ &f, detail::or_empty(name) };
	evc_member_opts k{};

	k.flags = static_cast<unsigned>(flags);
	return evc_guard(c_, name, body::run, &b, &k);
}

template <class F>
status
coord_ref::join_start(F f, const join_options &o) const
{
	struct body {
		F f;

		static void
		done(evc_coord *c, const evc_verdict *v, void *arg) noexcept
		{
			auto *p = static_cast<body *>(arg);
			evc_coord *above = evc_scope_parent(c);

			/* The round of c is over. */
			if (above == nullptr)
				above = c;
			detail::ignore(detail::caught_here(
				above, "join_start", [&] {
				static_assert(std::is_void_v<decltype(
					p->f(coord_ref(c), *v))>,
					"the function of join_start returns "
					"void");
				return p->f(coord_ref(c), *v), EVC_OK;
			}));
			/* f may have freed c, and throws nothing then. */
			detail::ignore(detail::destroy(above, "join_start", p));
		}
	};
	std::unique_ptr<body> p(new body{ std::move(f) });
	const evc_join_opts k = o.get();
	status st = evc_join_start(c_, body::done, p.get(), &k);

	detail::give(st, c_, "join_start", p);
	return st;
}

template <class S, class T>
result<reactor_ref>
coord_ref::reactor(const char *name, S set_up, T tear_down,
		   const thread_options &o) const
{
	struct body {
		S s;
		T t;
		std::string name;

		static evc_status
		begin(evc_reactor *r, void *arg)
		{
			auto *p = static_cast<body *>(arg);

			return detail::caught(evc_reactor_coord(r),
					      p->name.c_str(), [&] {
				return detail::answer_with(p->s,
							   reactor_ref(r));
			});
		}
		static evc_status
		end(evc_coord *c, void *arg)
		{
			auto *p = static_cast<body *>(arg);
			std::string n = std::move(p->name);
			evc_status st = detail::caught(c, n.c_str(), [&] {
				return detail::answer_with(p->t, coord_ref(c));
			}), left = detail::destroy(c, n.c_str(), p);

			return st != 0 ? st : left;
		}
	};
	std::unique_ptr<body> p(new body{ std::move(set_up),
					  std::move(tear_down),
					  detail::or_empty(name) });
	evc_member_opts k = o.get();
	evc_reactor *r = nullptr;

	k.stop = body::end;
	status st = evc_reactor_start(c_, name, body::begin, p.get(), &k, &r);
	detail::give(st, c_, name, p);
	if (!st)
		return st;
	return reactor_ref(r);
}

/* ---- the coordinator ---- */

struct config {
	double grace = 0; /* seconds after the stop; 0: 120 */
	const char *name = nullptr;
	config_flag flags{};
	std::vector<enum code> clean{}; /* empty: out_of_range alone */
	/* Called in the constructor alone. */
	std::function<bool(enum code)> is_clean{};
	/* Called with each line of the log, on a thread of the library. */
	std::function<void(log_level, const char *, const reason *)> log{};
	unsigned max_reasons = 0;
	/* A refused set-up is an error of the coordinator. */
	bool strict = true;
};

/* Lines go to standard error. */
inline void
log_stderr(log_level l, const char *line, const reason *r)
{
	evc_log_stderr(static_cast<int>(l), line, r, nullptr);
}

namespace detail {

/* What the callbacks of a coordinator use, as long as it lives. */
struct keeper {
	evc_coord *c = nullptr;
	std::vector<evc_status> codes;
	std::function<bool(enum code)> is_clean;
	std::function<void(log_level, const char *, const reason *)> log;
	std::function<void(coord_ref, const verdict &)> ended;
	std::shared_ptr<const std::string> ended_name;
	std::exception_ptr thrown{}; /* by is_clean */
	std::atomic<bool> log_failed{ false };
	std::vector<evc_coord *> above{}; /* of a scope: all that it is below */
	/* Lock of the registry. */
	keeper *next = nullptr;
	bool left = false; /* the object is gone, and c could not be freed */

	evc_config
	prepare(const config &k)
	{
		evc_config o{};

		for (enum code each : k.clean)
			codes.push_back(static_cast<int>(each));
		is_clean = k.is_clean;
		log = k.log;
		o.grace = k.grace;
		o.name = k.name;
		o.flags = static_cast<unsigned>(k.flags) |
			  (k.strict ? unsigned{ EVC_STRICT_SETUP } : 0);
		o.clean = codes.empty() ? nullptr : codes.data();
		o.n_clean = static_cast<unsigned>(codes.size());
		o.max_reasons = k.max_reasons;
		o.is_clean = is_clean ? ask : nullptr;
		o.log = log ? line : nullptr;
		o.arg = this;
		return o;
	}
	static bool
	ask(evc_status k, void *arg) noexcept
	{
		auto *self = static_cast<keeper *>(arg);
		bool yes = false;

		EVCOORD_TRY_ {
			yes = self->is_clean(static_cast<enum code>(k));
		}
#ifdef EVCOORD_EXCEPTIONS
		catch (...) {
			self->thrown = std::current_exception();
		}
#endif
		return yes;
	}
	static void
	line(int level, const char *text, const evc_reason *r, void *arg)
		noexcept
	{
		auto *self = static_cast<keeper *>(arg);

		EVCOORD_TRY_ {
			self->log(static_cast<log_level>(level), text, r);
		}
#ifdef EVCOORD_EXCEPTIONS
		catch (...) {
			/* Once: the error has a line, too. */
			if (self->c != nullptr &&
			    !self->log_failed.exchange(true))
				ignore(report_exception(self->c, "log"));
		}
#endif
	}
	static void
	on_ended(evc_coord *c, const evc_verdict *v, void *arg) noexcept
	{
		auto *self = static_cast<keeper *>(arg);
		evc_coord *above = evc_scope_parent(c);
		auto name = self->ended_name; /* ended() may free c */

		ignore(caught_here(above, name->c_str(), [&] {
			return self->ended(coord_ref(c), *v), EVC_OK;
		}));
	}
};

/* The keepers of scopes, because evc_abandon would free the scopes, too; of
   coordinators that are left; and those with a log of coordinators that are
   abandoned. */
struct registry {
	std::mutex m;
	keeper *first = nullptr;
	std::atomic<bool> any_left{ false };
	unsigned long asked = 0; /* how often free_left was called */

	static registry &
	get()
	{
		static registry *r = new registry; /* for ever */

		return *r;
	}
	/* Lock held. */
	keeper **
	place(keeper *k) noexcept
	{
		keeper **at = &first;

		while (*at != nullptr && *at != k)
			at = &(*at)->next;
		return at;
	}
	void
	add(keeper *k, bool left) noexcept
	{
		std::lock_guard<std::mutex> l(m);

		k->left = left;
		if (left)
			any_left = true;
		*place(k) = k;
	}
	/* Its coordinator is gone. */
	void
	forget(keeper *k) noexcept
	{
		{
			std::lock_guard<std::mutex> l(m);

			*place(k) = k->next;
		}
		delete k;
	}
	/* Lock held: is there a scope of ours below c? */
	bool
	has_below(const evc_coord *c) const noexcept
	{
		for (keeper *k = first; k != nullptr; k = k->next)
			for (evc_coord *each : k->above)
				if (each == c)
					return true;
		return false;
	}
	bool
	is_needed(const evc_coord *c) noexcept
	{
		std::lock_guard<std::mutex> l(m);

		return has_below(c);
	}
};

/* Free the coordinator of k; members that outlast its stop keep it.  false: it
   cannot be freed here, or not yet. */
inline bool
free_coord(keeper *k) noexcept
{
	registry &all = registry::get();
	evc_coord *c = k->c;

	if (evc_free(c) == 0)
		return all.forget(k), true;
	if (evc_scope_parent(c) != nullptr || all.is_needed(c) ||
	    evc_abandon(c) < 0)
		return false;
	/* The helper thread may have lines for the log yet. */
	if (k->log)
		all.add(k, false);
	else
		all.forget(k);
	return true;
}

/* Something has gone that may have kept a coordinator: free what is left, each
   on the thread of its home loop. */
inline void
free_left() noexcept
{
	registry &all = registry::get();

	if (!all.any_left)
		return;
	std::unique_lock<std::mutex> l(all.m);
	unsigned long asked = ++all.asked;
	for (keeper *k = all.first; k != nullptr;) {
		if (!k->left || all.has_below(k->c) ||
		    (evc_home(k->c) != nullptr &&
		     !evc_reactor_is_here(evc_home(k->c)))) {
			k = k->next;
			continue;
		}
		k->left = false; /* for other threads */
		l.unlock();
		bool freed = free_coord(k);
		l.lock();
		if (!freed)
			k->left = true;
		/* Another thread may have passed k by meanwhile. */
		k = freed || asked != all.asked ? all.first : k->next;
		asked = all.asked;
	}
}

/* The end of a join that a destructor could not wait for.  Inside a run of the
   loop the coordinator is left until the run returns. */
inline void
free_ended(evc_coord *c, const evc_verdict *, void *arg) noexcept
{
	auto *k = static_cast<keeper *>(arg);

	if (evc_free(c) != 0)
		return registry::get().add(k, true);
	registry::get().forget(k);
	free_left();
}

/* Stop, join, free: the end of a coordinator or a scope.  Inside its loop the
   loop frees it when the members are gone. */
inline void
end_coord(keeper *k) noexcept
{
	evc_coord *c = k->c;
	evc_join_opts o{};

	if (evc_scope_parent(c) != nullptr)
		ignore(evc_scope_ready(c));
	if (!evc_should_stop(c))
		ignore((evc_request_stop)(c, EVC_OK, "destroyed"));
	if (!evc_joined(c)) {
		o.grace = evc_stop_left(c) < 1e6 ? 0 : 120;
		ignore(evc_join(c, &o, nullptr));
	}
	if (!free_coord(k) &&
	    (evc_joined(c) || registry::get().is_needed(c) ||
	     evc_join_start(c, free_ended, k, nullptr) < 0)) {
		ignore(evc_signals_stop(c));
		registry::get().add(k, true);
	}
	free_left();
}

/* The owner of a coordinator or a scope. */
class owner : public coord_ref {
public:
	owner(owner &&o) noexcept
		: coord_ref(std::exchange(o.c_, nullptr)),
		  k_(std::exchange(o.k_, nullptr)), made_(o.made_) {}
	owner &
	operator=(owner &&o) noexcept
	{
		if (this != &o) {
			destroy();
			c_ = std::exchange(o.c_, nullptr);
			k_ = std::exchange(o.k_, nullptr);
			made_ = o.made_;
		}
		return *this;
	}
	~owner() { destroy(); }

	status made() const noexcept { return made_; }
	/* Stop, join, free, as the destructor does. */
	void
	destroy() noexcept
	{
		if (std::exchange(c_, nullptr) != nullptr)
			end_coord(std::exchange(k_, nullptr));
	}

protected:
	owner() noexcept = default;
	template <class M>
	void
	make(keeper *k, M &&call)
	{
		std::unique_ptr<keeper> p(k);

		made_ = call(&c_);
		if (!made_)
			return;
		k_ = p.release();
		k_->c = c_;
		for (coord_ref a = parent(); a; a = a.parent())
			k_->above.push_back(a.get());
		if (parent())
			registry::get().add(k_, false);
		if (auto thrown = std::exchange(k_->thrown, nullptr))
			ignore(caught_here(c_, "is_clean", [&] {
				return std::rethrow_exception(thrown), EVC_OK;
			}));
	}

private:
	keeper *k_ = nullptr;
	status made_ = -EVC_FAILED_PRECONDITION;
};

} // namespace detail

/*
 * A coordinator of the program's own.  The destructor belongs to the thread of
 * the home loop.
 */
class [[nodiscard]] coordinator : public detail::owner {
public:
	EVCOORD_KEEP_
	explicit coordinator(struct ev_loop *home = nullptr,
			     const config &k = {})
	{
		auto *p = new detail::keeper;

		make(p, [&](evc_coord **c) {
			const evc_config o = p->prepare(k);

			return evc_new(home, &o, c);
		});
	}
	EVCOORD_KEEP_
	explicit coordinator(const config &k) : coordinator(nullptr, k) {}
	coordinator(coordinator &&) = default;
	coordinator &
	operator=(coordinator &&) = default;
};

struct scope_options {
	evcoord::config config{};
	reactor_ref home{};
	int phase = 0;
	evcoord::on_error on_error = on_error::stop;
	/* Called once a round, when the members are gone. */
	std::function<void(coord_ref, const verdict &)> ended{};
};

/* A coordinator below another one.  ready() says that its set-up is done. */
class [[nodiscard]] scope : public detail::owner {
public:
	EVCOORD_KEEP_
	scope(coord_ref parent, const char *name, const scope_options &o = {})
	{
		auto *p = new detail::keeper;

		make(p, [&](evc_coord **c) {
			evc_scope_opts k{};

			k.config = p->prepare(o.config);
			k.home = o.home.get();
			k.phase = o.phase;
			k.on_error = static_cast<unsigned>(o.on_error);
			p->ended = o.ended;
			p->ended_name = std::make_shared<const std::string>(
				std::string(detail::or_empty(name)) +
				": ended");
			k.ended = o.ended ? detail::keeper::on_ended : nullptr;
			k.arg = p;
			return evc_scope_new(parent.get(), name, &k, c);
		});
	}
	scope(scope &&) = default;
	scope &
	operator=(scope &&) = default;

	status ready() const noexcept { return evc_scope_ready(c_); }
};

/*
 * Stops and joins at the end of a block.  Declared after all that the members
 * use, it is destroyed first, whichever way the block is left.
 */
class [[nodiscard]] stop_and_join {
public:
	EVCOORD_KEEP_
	explicit stop_and_join(coord_ref c, const char *file = __builtin_FILE(),
			       int line = __builtin_LINE(),
			       const char *func = __builtin_FUNCTION()) noexcept
		: c_(c), file_(file), line_(line), func_(func) {}
	stop_and_join(const stop_and_join &) = delete;
	~stop_and_join()
	{
		if (!c_ || c_.joined())
			return;
		/* What is thrown here is caught further out, and cannot be
		   looked at before. */
		if (!c_.should_stop())
			c_.request_stop(std::uncaught_exceptions() > thrown_
					? "an exception leaves a block"
					: "the end of a block",
					file_, line_, func_);
		detail::ignore(c_.join().get());
	}

private:
	coord_ref c_;
	const char *file_;
	int line_;
	const char *func_;
	int thrown_ = std::uncaught_exceptions();
};

/* ---- loopers, hooks, holds, cancel hooks ---- */

struct looper_options {
	looper_flag flags{};
	evcoord::missed missed = missed::skip;
	double jitter = 0;
	double grace = 0;
	reactor_ref reactor{};
};

/* f(), or f(coord_ref), at each boundary; the result as evc_looper_start. */
class [[nodiscard]] looper : public detail::member {
public:
	looper() noexcept = default;
	template <class F>
	EVCOORD_KEEP_
	looper(coord_ref c, const char *name, seconds interval, F f,
	       const looper_options &o = {})
	{
		using block = detail::shared_function<F>;
		evc_member_opts k{};

		k.flags = static_cast<unsigned>(o.flags);
		k.missed = static_cast<unsigned>(o.missed);
		k.jitter = o.jitter;
		k.grace = o.grace;
		k.reactor = o.reactor.get();
		k.release = block::released;
		make(new block(c.get(), name, std::move(f)), [&](block *b) {
			return evc_looper_start(c.get(), name, interval,
						block::call, b, &k, &b->id);
		});
	}

	status trigger() const noexcept { return with(evc_looper_trigger); }
	status pause() const noexcept { return with(evc_member_pause); }
	status resume() const noexcept { return with(evc_member_resume); }
	status
	interval(seconds s) const noexcept
	{
		return with([s](evc_coord *c, evc_id id) {
			return evc_looper_set_interval(c, id, s);
		});
	}
};

/* f(), or f(coord_ref), once for each stop. */
class [[nodiscard]] hook : public detail::member {
public:
	hook() noexcept = default;
	template <class F>
	EVCOORD_KEEP_
	hook(coord_ref c, const char *name, F f, hook_flag flags = {},
	     reactor_ref r = {})
	{
		using block = detail::shared_function<F>;
		evc_member_opts k{};

		k.flags = static_cast<unsigned>(flags);
		k.reactor = r.get();
		k.release = block::released;
		make(new block(c.get(), name, std::move(f)), [&](block *b) {
			return evc_on_stop(c.get(), name, block::call, b, &k,
					   &b->id);
		});
	}
};

/* Alive until its destructor: something of another library's, in flight. */
class [[nodiscard]] hold {
public:
	EVCOORD_KEEP_
	hold(coord_ref c, const char *name, hold_flag flags = {}) noexcept
		: c_(c.get())
	{
		evc_member_opts k{};

		k.flags = static_cast<unsigned>(flags);
		made_ = evc_hold_begin(c_, name, &k, &id_);
	}
	hold(hold &&o) noexcept
		: c_(o.c_), id_(std::exchange(o.id_, 0)), made_(o.made_) {}
	hold &
	operator=(hold &&o) noexcept
	{
		if (this != &o) {
			end();
			c_ = o.c_;
			id_ = std::exchange(o.id_, 0);
			made_ = o.made_;
		}
		return *this;
	}
	~hold() { end(); }

	status made() const noexcept { return made_; }
	explicit operator bool() const noexcept { return id_ != 0; }
	void
	end() noexcept
	{
		if (id_ != 0)
			detail::ignore(evc_hold_end(c_, std::exchange(id_, 0)));
	}

private:
	evc_coord *c_;
	evc_id id_ = 0;
	status made_;
};

/*
 * Around a call that blocks: at a stop the helper thread calls f(), which wakes
 * this thread.  Without it (a stop stands) do not begin the call.
 */
template <class F>
class [[nodiscard]] unblock {
public:
	EVCOORD_KEEP_
	unblock(coord_ref c, F f, cancel_flag flags = {})
		: c_(c.get()), f_(std::move(f)),
		  made_(evc_cancel_push(c_, wake, this,
					static_cast<unsigned>(flags), &id_)) {}
	unblock(const unblock &) = delete;
	~unblock()
	{
		if (id_ != 0)
			detail::ignore(evc_cancel_pop(c_, id_));
	}

	status made() const noexcept { return made_; }
	explicit operator bool() const noexcept { return id_ != 0; }

private:
	static void
	wake(void *arg) noexcept
	{
		auto *self = static_cast<unblock *>(arg);

		detail::heard(self->c_, "unblock", self->f_);
	}

	evc_coord *c_;
	F f_;
	evc_id id_ = 0;
	status made_;
};

/* A condition whose waits end at a stop, beside a std::mutex. */
class [[nodiscard]] condition {
public:
	EVCOORD_KEEP_
	explicit condition(coord_ref c) noexcept
		: made_(evc_cond_new(c.get(), &cond_)) {}
	condition(const condition &) = delete;
	~condition() { detail::ignore(evc_cond_free(cond_)); }

	status made() const noexcept { return made_; }
	void notify_one() noexcept { evc_cond_signal(cond_); }
	void notify_all() noexcept { evc_cond_broadcast(cond_); }
	/* Wait until is_true() holds: ok, cancelled, deadline_exceeded. */
	template <class P>
	status
	wait(std::unique_lock<std::mutex> &lock, P is_true,
	     seconds timeout = forever)
	{
		return evc_cond_wait(cond_, lock.mutex()->native_handle(),
				     [](void *p) -> bool {
			return (*static_cast<P *>(p))();
		}, &is_true, timeout);
	}

private:
	evc_cond *cond_ = nullptr;
	status made_;
};

/* ---- tasks ---- */

/*
 * A piece of work in flight on a loop, for example a connection:
 *
 *     struct conn : evcoord::task<conn> {
 *             static constexpr const char *task_name = "conn";
 *             void on_stop() { delete this; }
 *     };
 *
 * The class may have on_stop(), on_late() and describe(char *, size_t) const,
 * and the constants task_name, task_flags and task_grace.  The destructor ends
 * the task, on the thread of its loop.  on_stop and on_late may destroy the
 * object.
 */
template <class D>
class task {
public:
	static constexpr const char *task_name = "task";
	static constexpr task_flag task_flags{};
	static constexpr double task_grace = 0;

	task(const task &) = delete;
	task &
	operator=(const task &) = delete;

	/* cancelled after the stop. */
	status begin(reactor_ref r) noexcept { return begin_as(r, &class_); }
	void end() noexcept { evc_task_end(&t_); }
	bool in_flight() const noexcept { return reactor().get() != nullptr; }
	reactor_ref reactor() const noexcept { return evc_task_reactor(&t_); }
	coord_ref coord() const noexcept { return evc_task_coord(&t_); }

	void
	on_stop() {}
	void
	on_late() {}
	void
	describe(char *, std::size_t) const {}

protected:
	task() noexcept = default;
	~task() { evc_task_end(&t_); }
	status
	begin_as(reactor_ref r, const evc_task_class *k) noexcept
	{
		t_.arg = this;
		quiet_ = false;
		return evc_task_begin(r.get(), &t_, k);
	}

	static const evc_task_class class_;

private:
	static D *
	of(const evc_task *t) noexcept
	{
		return static_cast<D *>(static_cast<task *>(t->arg));
	}
	static void
	stopped(evc_task *t, void *) noexcept
	{
		evc_coord *c = evc_task_coord(t);

		detail::heard(c, D::task_name, [t] {
			return of(t)->on_stop();
		});
	}
	static void
	late(evc_task *t, void *) noexcept
	{
		evc_coord *c = evc_task_coord(t);

		detail::heard(c, D::task_name, [t] {
			return of(t)->on_late();
		});
	}
	static void
	described(const evc_task *t, char *buf, std::size_t n, void *) noexcept
	{
		D *d = of(t);
		bool &quiet = static_cast<task *>(d)->quiet_;

		if (quiet)
			return;
		detail::heard(evc_task_coord(t), D::task_name, [&] {
			EVCOORD_TRY_ {
				std::as_const(*d).describe(buf, n);
			}
#ifdef EVCOORD_EXCEPTIONS
			catch (...) {
				quiet = true;
				throw;
			}
#endif
		});
	}
	static constexpr evc_task_class
	make_class() noexcept
	{
		evc_task_class k{};

		k.name = D::task_name;
		k.flags = static_cast<unsigned>(D::task_flags);
		k.grace = D::task_grace;
		if (!std::is_same_v<decltype(&D::on_stop), void (task::*)()>)
			k.on_stop = stopped;
		if (!std::is_same_v<decltype(&D::on_late), void (task::*)()>)
			k.on_late = late;
		if (!std::is_same_v<decltype(&D::describe),
				    void (task::*)(char *, std::size_t) const>)
			k.describe = described;
		return k;
	}

	evc_task t_{};
	/* describe() has thrown, and is not asked again */
	bool quiet_ = false;
};

template <class D>
const evc_task_class task<D>::class_ = task<D>::make_class();

/* A task inside an object, which calls its member functions:
     evcoord::member_task<conn, &conn::stop> task_{ *this }; */
template <class T, auto Stop, auto Late = nullptr>
class member_task : public task<member_task<T, Stop, Late>> {
public:
	explicit member_task(T &owner) noexcept : owner_(owner) {}
	auto on_stop() { return (owner_.*Stop)(); }
	auto
	on_late()
	{
		if constexpr (!std::is_null_pointer_v<decltype(Late)>)
			return (owner_.*Late)();
	}

private:
	T &owner_;
};

/* ---- posts ---- */

/* A handle of a loop that outlives the loop; for any thread. */
class [[nodiscard]] loop_ref {
public:
	loop_ref() noexcept = default;
	EVCOORD_KEEP_
	explicit loop_ref(reactor_ref r) noexcept : l_(evc_loop_of(r.get())) {}
	loop_ref(loop_ref &&o) noexcept : l_(std::exchange(o.l_, nullptr)) {}
	loop_ref &
	operator=(loop_ref &&o) noexcept
	{
		std::swap(l_, o.l_);
		return *this;
	}
	~loop_ref() { evc_loop_release(l_); }

	evc_loop_ref *get() const noexcept { return l_; }
	explicit operator bool() const noexcept { return l_ != nullptr; }
	/* The reactor, on the loop's own thread. */
	reactor_ref reactor() const noexcept { return evc_loop_reactor(l_); }
	/* Run f on the loop's thread, in the loop's next turn: f(), or
	   f(reactor_ref).  When the loop is gone before that, f is destroyed
	   only; f(reactor_ref, status) is called once in each case. */
	template <class F>
	status
	post(F f) const
	{
		return post(nullptr, f);
	}
	/* The same, also after the stop: an answer for a connection that is
	   still there. */
	template <class F>
	status
	post_after_stop(F f) const
	{
		return post_late(nullptr, f);
	}

private:
	friend class reactor_ref;
	/* A post in memory of its own, with a handle of its own. */
	template <class F>
	struct late;

	/* Another handle of the loop; an empty one when the loop is gone. */
	loop_ref
	another() const noexcept
	{
		reactor_ref r = evc_loop_enter(l_);
		loop_ref l(r);

		if (r)
			evc_loop_leave(l_);
		return l;
	}
	/* A handle does not know whether the coordinator is there. */
	template <class F>
	status
	post(evc_coord *c, F &f) const
	{
		std::unique_ptr<F> p(new F(std::move(f)));
		status st = evc_post(l_, posted<F>, p.get());

		detail::give(st, c, "post", p);
		return st;
	}
	template <class F>
	status
	post_late(evc_coord *c, F &f) const
	{
		std::unique_ptr<late<F>> p(new late<F>(*this, f));
		status st = evc_post_message(l_, p.get());

		detail::give(st, c, "post", p);
		return st;
	}
	template <class F>
	static void
	posted(evc_reactor *r, evc_status why, void *arg) noexcept
	{
		auto *f = static_cast<F *>(arg);

		called(r, why, *f, f);
	}
	/* Call f, and destroy the block that it is in. */
	template <class F, class P>
	static void
	called(evc_reactor *r, evc_status why, F &f, P *block) noexcept
	{
		evc_coord *c = evc_reactor_coord(r);

		detail::heard(c, "post", [&]() -> status {
			if constexpr (std::is_invocable_v<F &, reactor_ref,
							  status>)
				return detail::answer(f, reactor_ref(r),
						      status(why));
			else if (why == 0)
				return detail::answer_with(f, reactor_ref(r));
			return code::ok;
		});
		detail::ignore(detail::destroy(c, "post", block));
	}

	evc_loop_ref *l_ = nullptr;
};

template <class F>
struct loop_ref::late : evc_message {
	loop_ref loop;
	F f;

	late(const loop_ref &l, F &g)
		: evc_message{}, loop(l.another()), f(std::move(g))
	{
		fn = [](evc_message *m, evc_status why) {
			auto *p = static_cast<late *>(m);
			reactor_ref r;

			if (why == 0)
				r = p->loop.reactor();
			called(r.get(), why, p->f, p);
		};
		flags = EVC_AFTER_STOP;
	}
};

template <class F>
status
reactor_ref::post(F f) const
{
	return loop_ref(*this).post(coord().get(), f);
}

template <class F>
status
reactor_ref::post_after_stop(F f) const
{
	return loop_ref(*this).post_late(coord().get(), f);
}

/* ---- pools ---- */

/* The job that a work function runs in. */
class job_ref {
public:
	explicit job_ref(evc_job *j) noexcept : j_(j) {}
	bool should_stop() const noexcept { return evc_job_should_stop(j_); }

private:
	evc_job *j_;
};

struct pool_options {
	unsigned threads = 0; /* 0: one for each cpu */
	unsigned capacity = 0;
	double idle = 0;
	std::size_t stack = 0;
	pool_flag flags{};
	bool kick = false;
};

namespace detail {

/* Common to queue and pool: in use when it is destroyed, so the members that
   use it are stopped and joined first.  What cannot be freed then is left to
   the coordinator; when there was no join, as on the loop, that is an error. */
inline void
stop_members(evc_coord *c, const char *what) noexcept
{
	if (!evc_should_stop(c))
		ignore((evc_request_stop)(c, EVC_OK, what));
	ignore(evc_join(c, nullptr, nullptr));
}

template <class T>
bool
free_or_join(evc_coord *c, T *p, evc_status (*free)(T *), const char *what)
	noexcept
{
	if (free(p) == 0)
		return true;
	/* Once is enough: a join that has given up on members would again. */
	if (!evc_joined(c) || !evc_should_stop(c))
		stop_members(c, what);
	if (free(p) == 0)
		return true;
	if (evc_joined(c))
		evc_log(c, EVC_LOG_WARNING, nullptr, "%s: %s", what,
			evc_last_error());
	else
		ignore((evc_fail)(c, EVC_FAILED_PRECONDITION, 0, "%s: %s", what,
				  evc_last_error()));
	return false;
}

} // namespace detail

class [[nodiscard]] pool {
public:
	EVCOORD_KEEP_
	pool(coord_ref c, const char *name, const pool_options &o = {}) noexcept
		: c_(c.get())
	{
		evc_pool_opts k{};

		k.n_threads = o.threads;
		k.capacity = o.capacity;
		k.idle = o.idle;
		k.stack = o.stack;
		k.flags = static_cast<unsigned>(o.flags);
		k.thread_flags = o.kick ? unsigned{ EVC_KICK } : 0;
		made_ = evc_pool_new(c_, name, &k, &p_);
	}
	pool(pool &&o) noexcept
		: c_(o.c_), p_(std::exchange(o.p_, nullptr)), made_(o.made_) {}
	pool &
	operator=(pool &&o) noexcept
	{
		std::swap(c_, o.c_);
		std::swap(p_, o.p_);
		std::swap(made_, o.made_);
		return *this;
	}
	~pool()
	{
		if (p_ != nullptr)
			detail::free_or_join(c_, p_, evc_pool_free,
					     "a pool is destroyed in use");
		detail::free_left();
	}

	status made() const noexcept { return made_; }
	explicit operator bool() const noexcept { return p_ != nullptr; }
	evc_pool *get() const noexcept { return p_; }
	coord_ref coord() const noexcept { return c_; }

	/* Run work() or work(job_ref) on a thread of the pool, then
	   done(status) or done() on the loop, with the result of work; or with
	   cancelled when work was not called.  name is static, or NULL. */
	template <class W, class D>
	status
	submit(reactor_ref r, const char *name, W work, D done)
	{
		auto p = job<W, D>::make(*this, name, work, done);
		status st = evc_pool_submit(p_, r.get(), p.get());

		detail::give(st, c_, p->called(), p);
		return st;
	}
	/* From any thread; with a timeout it waits for room. */
	template <class W, class D>
	status
	submit(const loop_ref &l, const char *name, W work, D done,
	       seconds timeout = 0)
	{
		auto p = job<W, D>::make(*this, name, work, done);
		status st = evc_pool_submit_to(p_, l.get(), p.get(), timeout);

		detail::give(st, c_, p->called(), p);
		return st;
	}

private:
	template <class W, class D>
	struct job : evc_job {
		evc_coord *c;
		W w;
		D d;

		job(pool &p, const char *n, W &work_, D &done_)
			: evc_job(), c(p.c_), w(std::move(work_)),
			  d(std::move(done_))
		{
			work = run;
			done = finish;
			name = n;
		}
		static std::unique_ptr<job>
		make(pool &p, const char *n, W &w, D &d)
		{
			return std::unique_ptr<job>(new job(p, n, w, d));
		}
		const char *
		called() const noexcept
		{
			return name != nullptr ? name : "job";
		}
		static evc_status
		run(evc_job *j)
		{
			auto *self = static_cast<job *>(j);

			return detail::caught_anew(self->c, self->called(),
						   [&] {
				return detail::answer_with(self->w, job_ref(j));
			});
		}
		static void
		finish(evc_job *j, evc_status st) noexcept
		{
			auto *self = static_cast<job *>(j);
			evc_coord *c = self->c;
			const char *n = self->called();

			detail::heard(c, n, [&]() -> status {
				return detail::answer_with(self->d,
							   status(st));
			});
			detail::ignore(detail::destroy(c, n, self));
		}
	};

	evc_coord *c_;
	evc_pool *p_ = nullptr;
	status made_;
};

/* ---- queues ---- */

namespace detail {
template <class T> struct push_wait;
}

struct queue_options {
	std::size_t capacity = 64;
	queue_flag flags{};
};

/*
 * A bounded queue of T that knows the stop.  Items lie in memory of their own;
 * those that are left are destroyed with the queue.
 */
template <class T>
class [[nodiscard]] queue {
public:
	using value_type = T;

	EVCOORD_KEEP_
	queue(coord_ref c, const char *name, const queue_options &o = {})
		: c_(c.get()), name_(detail::or_empty(name))
	{
		evc_queue_opts k{};

		k.flags = static_cast<unsigned>(o.flags);
		made_ = evc_queue_new(c_, name, o.capacity, &k, &q_);
	}
	queue(queue &&o) noexcept
		: c_(o.c_), q_(std::exchange(o.q_, nullptr)), made_(o.made_),
		  name_(std::move(o.name_)),
		  feeders_(std::move(o.feeders_)), watched_(o.watched_),
		  pushers_(std::move(o.pushers_)) {}
	queue &
	operator=(queue &&o) noexcept
	{
		std::swap(c_, o.c_);
		std::swap(q_, o.q_);
		std::swap(made_, o.made_);
		std::swap(name_, o.name_);
		std::swap(feeders_, o.feeders_);
		std::swap(watched_, o.watched_);
		std::swap(pushers_, o.pushers_);
		return *this;
	}
	~queue()
	{
		if (q_ == nullptr)
			return;
		/* Those that use the queue may yet take its items. */
		if (!evc_joined(c_) && in_use())
			detail::stop_members(c_, in_use_);
		/* A condition keeps c_, the feeders' too, when the queue is the
		   last that uses it. */
		evc_cond *keeps = nullptr;
		if (!feeders_.empty())
			detail::ignore(evc_cond_new(c_, &keeps));
		/* A queue that is left keeps what its feeders call. */
		if (!detail::free_or_join(c_, q_, emptied, in_use_))
			for (auto &p : feeders_)
				detail::ignore((p.release(), EVC_OK));
		feeders_.clear();
		detail::ignore(evc_cond_free(keeps));
		detail::free_left();
	}

	status made() const noexcept { return made_; }
	explicit operator bool() const noexcept { return q_ != nullptr; }
	evc_queue *get() const noexcept { return q_; }

	/* A refused item is destroyed. */
	status
	push(T item, seconds timeout = forever)
	{
		return push(std::make_unique<T>(std::move(item)), timeout);
	}
	/* A template, because {} and a null pointer are items. */
	template <class U, class = std::enable_if_t<std::is_convertible_v<
		std::unique_ptr<U>, std::unique_ptr<T>>>>
	status
	push(std::unique_ptr<U> &&item, seconds timeout = forever)
	{
		std::unique_ptr<T> &&own = std::move(item);

		return push(own, timeout);
	}
	/* A refused item stays in item. */
	status
	push(std::unique_ptr<T> &item, seconds timeout = forever)
	{
		status st = evc_queue_push(q_, item.get(), timeout);

		if (st)
			detail::ignore((item.release(), EVC_OK));
		return st;
	}
	/* An item; out_of_range at the end of input, cancelled at a stop. */
	result<T>
	pop(seconds timeout = forever)
	{
		void *p = nullptr;
		status st = evc_queue_pop(q_, &p, timeout);

		return taken(st, p);
	}
	/* Whatever the state. */
	result<T>
	try_pop()
	{
		void *p = nullptr;
		status st = evc_queue_try_pop(q_, &p);

		return taken(st, p);
	}
	/* The end of input. */
	status close() noexcept { return evc_queue_close(q_); }
	status cancel() noexcept { return evc_queue_cancel(q_); }
	status reopen() noexcept { return evc_queue_reopen(q_); }
	status
	drain(seconds timeout = forever)
	{
		return evc_queue_drain(q_, timeout);
	}
	std::size_t
	size() const noexcept
	{
		evc_queue_info i;

		return evc_queue_get(q_, &i) == 0 ? i.n : 0;
	}

	/* n threads call f(), or f(number), again and again and push what f
	   returns: an optional T, or, as the end of input, an empty one. */
	template <class F>
	status
	feed(const char *name, unsigned n, F f, const thread_options &o = {})
	{
		evc_feed_opts k{};

		feeders_.push_back(std::make_unique<feeder<F>>(
			c_, name, std::move(f)));
		k.dropped = drop_item;
		k.member = o.get();
		status st = evc_queue_feed(q_, name, n, feeder<F>::next,
					   feeders_.back().get(), &k);
		if (!st)
			feeders_.pop_back();
		return st;
	}

	/* Pop on a loop: f(T) with each item; f(T *, status), when f takes
	   that, once more at the end with a null pointer.  The watch ends with
	   the stop or the end of input. */
	template <class F>
	status
	watch(reactor_ref r, F f, watch_flag flags = {})
	{
		std::unique_ptr<watcher<F>> p(
			new watcher<F>{ c_, name_, std::move(f) });
		status st = evc_queue_watch(q_, r.get(), watcher<F>::call,
					    p.get(),
					    static_cast<unsigned>(flags),
					    nullptr);

		detail::give(st, c_, name_.c_str(), p);
		watched_ = watched_ || st;
		return st;
	}

private:
	struct feed_base {
		virtual ~feed_base() = default;
	};
	template <class F>
	struct feeder final : feed_base {
		evc_coord *c;
		std::string name;
		union {
			F f; /* until the destructor */
		};

		feeder(evc_coord *coord, const char *n, F &&fn)
			: c(coord), name(detail::or_empty(n)),
			  f(std::move(fn)) {}
		~feeder() noexcept override
		{
			detail::ignore(detail::caught_here(
				c, name.c_str(),
				[&] { return f.~F(), EVC_OK; }));
		}
		static evc_status
		next(evc_queue *, unsigned number, void **item, void *arg)
		{
			auto *self = static_cast<feeder *>(
				static_cast<feed_base *>(arg));

			return detail::caught(self->c, self->name.c_str(), [&] {
				return self->one(number, item);
			});
		}
		evc_status
		one(unsigned number, void **item)
		{
			constexpr bool counts = std::is_invocable_v<F &,
								    unsigned>;
			std::optional<T> v = [&]() -> decltype(auto) {
				if constexpr (counts)
					return f(number);
				else
					return f();
			}();

			if (!v)
				return EVC_OUT_OF_RANGE;
			*item = new T(std::move(*v));
			return EVC_OK;
		}
	};
	template <class F>
	struct watcher {
		evc_coord *c;
		std::string name;
		F f;

		static void
		call(evc_queue *, void *item, evc_status why, void *arg)
			noexcept
		{
			auto *self = static_cast<watcher *>(arg);
			const char *n = self->name.c_str();

			detail::heard(self->c, n, [&]() -> status {
				return self->one(static_cast<T *>(item), why);
			});
			if (item == nullptr) {
				std::string last = std::move(self->name);

				detail::ignore(detail::destroy(
					self->c, last.c_str(), self));
			}
		}
		evc_status
		one(T *item, evc_status why)
		{
			std::unique_ptr<T> owned(item);

			(void)why;
			if constexpr (std::is_invocable_v<F &, T *, status>)
				return detail::answer(f, item, status(why));
			else if (item != nullptr)
				return detail::answer(f, std::move(*item));
			return EVC_OK;
		}
	};

	/* Pushes of coroutines that wait for room: a thread makes them in
	   turn, and ends when none is left. */
	struct pushers {
		struct push {
			std::unique_ptr<T> item;
			void *arg;
			void (*told)(void *arg, status) noexcept;
		};
		std::mutex m;
		std::deque<push> waiting;
		bool running = false;

		bool
		in_use()
		{
			std::lock_guard<std::mutex> l(m);

			return running;
		}
		/* true: a thread has to be started. */
		bool
		add(push p)
		{
			std::lock_guard<std::mutex> l(m);

			waiting.push_back(std::move(p));
			return !std::exchange(running, true);
		}
		std::optional<push>
		next()
		{
			std::lock_guard<std::mutex> l(m);
			std::optional<push> p;

			running = !waiting.empty();
			if (running) {
				p.emplace(std::move(waiting.front()));
				waiting.pop_front();
			}
			return p;
		}
		/* refused: no thread. */
		void
		run(evc_coord *c, evc_queue *q, evc_status refused)
		{
			while (auto p = next()) {
				T *item = p->item.release();
				evc_status st = refused;

				if (st == 0)
					st = evc_queue_push(q, item, forever);
				if (st != 0)
					detail::ignore(detail::destroy(
						c, "queue", item));
				p->told(p->arg, st);
			}
		}
	};
	friend struct detail::push_wait<T>;

	/* told(arg, status), once, on any thread. */
	void
	push_later(std::unique_ptr<T> item, void *arg,
		   void (*told)(void *, status) noexcept)
	{
		auto p = pushers_;
		evc_queue *q = q_;
		evc_coord *c = c_;
		std::string name = name_;

		if (!p->add({ std::move(item), arg, told }))
			return;
		/* From here on the queue may be gone. */
		evc_status st = detail::caught_here(c, name.c_str(), [&] {
			return coord_ref(c).thread(name.c_str(), [p, c, q] {
				p->run(c, q, 0);
			}).made().get();
		});
		if (st != 0)
			p->run(c, q, st);
	}

	static result<T>
	taken(status st, void *p)
	{
		std::unique_ptr<T> owned(static_cast<T *>(p));

		if (!st)
			return st;
		return { std::in_place, std::move(*owned) };
	}
	static void
	drop_item(void *item, void *) noexcept
	{
		detail::ignore(detail::destroy(nullptr, "queue",
					       static_cast<T *>(item)));
	}
	static void
	drop_all(evc_queue *q) noexcept
	{
		void *p;

		while (evc_queue_try_pop(q, &p) == 0)
			drop_item(p, nullptr);
	}
	bool
	in_use() const noexcept
	{
		evc_queue_info i;

		return !feeders_.empty() || watched_ || pushers_->in_use() ||
		       evc_queue_get(q_, &i) < 0 ||
		       i.n_pushing + i.n_popping > 0;
	}
	static evc_status
	emptied(evc_queue *q)
	{
		drop_all(q);
		return evc_queue_free(q);
	}

	static constexpr const char *in_use_ = "a queue is destroyed in use";

	evc_coord *c_;
	evc_queue *q_ = nullptr;
	status made_;
	std::string name_;
	std::vector<std::unique_ptr<feed_base>> feeders_;
	bool watched_ = false;
	std::shared_ptr<pushers> pushers_ = std::make_shared<pushers>();
};

/* ---- std::stop_token, both ways ---- */

#ifdef __cpp_lib_jthread

/* The stop of c requests the stop of a std::stop_source, in the request itself
   or right after it, on the library's helper thread.  It is destroyed before c
   is. */
class [[nodiscard]] stop_source_of {
public:
	EVCOORD_KEEP_
	explicit stop_source_of(coord_ref c, std::stop_source s = {})
		: source_(std::move(s)), scope_(c, "stop_source", options()),
		  hook_(scope_, "stop_source", [w = source_]() mutable {
			w.request_stop();
		  })
	{
		detail::ignore(scope_.ready().get());
	}

	status made() const noexcept { return hook_.made(); }
	std::stop_token token() const noexcept { return source_.get_token(); }

private:
	static scope_options
	options()
	{
		scope_options o;

		o.config.flags = config_flag::no_home;
		return o;
	}

	std::stop_source source_;
	scope scope_;
	hook hook_;
};

/* A stop that a std::stop_token hears is a stop of c, as long as c is there. */
class [[nodiscard]] stop_on_token {
public:
	EVCOORD_KEEP_
	stop_on_token(coord_ref c, std::stop_token t,
		      const char *text = "a stop_token")
		: to_(std::make_shared<target>(c)),
		  hook_(c, "stop_on_token", [e = end(to_)] {}),
		  callback_(std::move(t), request{ to_, text }) {}

	status made() const noexcept { return hook_.made(); }

private:
	struct target {
		std::mutex m;
		coord_ref c;

		explicit target(coord_ref to) noexcept : c(to) {}
	};
	/* Of the hook: goes when the hook does, at the latest with c. */
	struct end {
		std::shared_ptr<target> to;

		explicit end(std::shared_ptr<target> t) noexcept
			: to(std::move(t)) {}
		end(end &&) = default;
		~end()
		{
			if (!to)
				return;
			std::lock_guard<std::mutex> l(to->m);
			to->c = coord_ref();
		}
	};
	struct request {
		std::shared_ptr<target> to;
		const char *text;

		void
		operator()() const noexcept
		{
			std::lock_guard<std::mutex> l(to->m);

			if (to->c)
				to->c.request_stop(code::ok, text, "", 0, "");
		}
	};

	std::shared_ptr<target> to_;
	hook hook_;
	std::stop_callback<request> callback_;
};

#endif

/* ---- coroutines ---- */

#ifdef EVCOORD_COROUTINES

/*
 * A function that may wait on a loop: co<T>.  A co begins when it is awaited,
 * or given to spawn().
 */
template <class T = void>
class co;

namespace detail {

template <class P, class = void>
struct has_name : std::false_type {};
template <class P>
struct has_name<P, std::void_t<decltype(std::declval<P &>().name)>>
	: std::is_convertible<decltype(std::declval<P &>().name),
			      const char *> {};

/* The name that spawn() gave. */
template <class P>
const char *
name_of(std::coroutine_handle<P> h) noexcept
{
	if constexpr (has_name<P>::value)
		return h.promise().name;
	else
		return "coroutine";
}

struct co_promise_base {
	std::coroutine_handle<> after = std::noop_coroutine();
	const char *name = "coroutine"; /* of the outermost one */
	std::exception_ptr thrown;

	struct final_awaiter {
		bool await_ready() const noexcept { return false; }
		template <class P>
		std::coroutine_handle<>
		await_suspend(std::coroutine_handle<P> h) const noexcept
		{
			return h.promise().after;
		}
		void
		await_resume() const noexcept {}
	};

	std::suspend_always initial_suspend() const noexcept { return {}; }
	final_awaiter final_suspend() const noexcept { return {}; }
	void
	unhandled_exception() noexcept { thrown = std::current_exception(); }
	void
	rethrow() const
	{
#ifdef EVCOORD_EXCEPTIONS
		if (thrown)
			std::rethrow_exception(thrown);
#endif
	}
};

template <class T>
struct co_promise : co_promise_base {
	std::optional<T> v;

	co<T>
	get_return_object() noexcept;
	template <class U = T>
	void return_value(U &&u) { v.emplace(std::forward<U>(u)); }
	T take() { return rethrow(), std::move(*v); }
};

template <>
struct co_promise<void> : co_promise_base {
	co<void>
	get_return_object() noexcept;
	void
	return_void() const noexcept {}
	void take() { rethrow(); }
};

} // namespace detail

template <class T>
class [[nodiscard]] co {
	static_assert(!std::is_reference_v<T>,
		      "a co has a value for a result: a pointer instead of a "
		      "reference");

public:
	using promise_type = detail::co_promise<T>;

	explicit co(std::coroutine_handle<promise_type> h) noexcept : h_(h) {}
	co(co &&o) noexcept : h_(std::exchange(o.h_, nullptr)) {}
	co &
	operator=(co &&o) noexcept
	{
		std::swap(h_, o.h_);
		return *this;
	}
	~co()
	{
		if (h_)
			h_.destroy();
	}

	/* false: moved from. */
	explicit operator bool() const noexcept { return bool(h_); }

	struct awaiter {
		std::coroutine_handle<promise_type> h;

		bool
		await_ready() const
		{
			if (!h || h.done())
				status(evc_refuse(
					-EVC_INVALID_ARGUMENT,
					"co_await: the coroutine was moved "
					"from, or has ended")).value();
			return false;
		}
		template <class P>
		std::coroutine_handle<>
		await_suspend(std::coroutine_handle<P> after) noexcept
		{
			h.promise().after = after;
			h.promise().name = detail::name_of(after);
			return h;
		}
		T await_resume() { return h.promise().take(); }
	};
	awaiter operator co_await() && noexcept { return { h_ }; }

private:
	std::coroutine_handle<promise_type> h_;
};

template <class T>
co<T>
detail::co_promise<T>::get_return_object() noexcept
{
	return co<T>(std::coroutine_handle<co_promise>::from_promise(*this));
}

inline co<void>
detail::co_promise<void>::get_return_object() noexcept
{
	return co<void>(std::coroutine_handle<co_promise>::from_promise(*this));
}

namespace detail {

/* The outermost coroutine: a task of its loop, destroyed at its end. */
struct root {
	struct promise_type : task<promise_type> {
		std::string kept;
		const char *name;
		const evc_task_class *named;

		static constexpr const char *task_name = "coroutine";

		template <class C>
		promise_type(const C &, const char *n)
			: kept(or_empty(n)), name(kept.c_str()),
			  named(class_of(kept)) {}
		status
		begin(reactor_ref r) noexcept { return begin_as(r, named); }
		void
		describe(char *buf, std::size_t n) const
		{
			if (named == &class_)
				std::snprintf(buf, n, "%s", name);
		}
		/* The first names have a class each: a loop counts the tasks of
		   a limited number of classes, and the memory stays. */
		static const evc_task_class *
		class_of(const std::string &name)
		{
			static auto *all =
				new std::map<std::string, evc_task_class>;
			static std::mutex *m = new std::mutex;
			static thread_local const evc_task_class *last =
				&class_;

			if (name == last->name)
				return last;
			std::lock_guard<std::mutex> l(*m);
			auto i = all->find(name);

			if (i == all->end() && (all->size() == 8 ||
						name.empty()))
				return &class_;
			if (i == all->end()) {
				i = all->emplace(name, class_).first;
				i->second.name = i->first.c_str();
			}
			return last = &i->second;
		}
		root
		get_return_object() noexcept
		{
			return { std::coroutine_handle<promise_type>::
				 from_promise(*this) };
		}
		std::suspend_always
		initial_suspend() const noexcept { return {}; }
		std::suspend_never final_suspend() const noexcept { return {}; }
		void
		return_void() const noexcept {}
		/* What a destructor throws at the very end. */
		[[noreturn]] void
		unhandled_exception() const noexcept { std::terminate(); }
	};

	std::coroutine_handle<promise_type> h;
};

/* The own promise of the coroutine that awaits this. */
struct own_root {
	root::promise_type *p = nullptr;

	bool await_ready() const noexcept { return false; }
	bool
	await_suspend(std::coroutine_handle<root::promise_type> h) noexcept
	{
		p = &h.promise();
		return false;
	}
	root::promise_type &await_resume() const noexcept { return *p; }
};

struct resume_awaiter {
	evc_message m{};
	evc_loop_ref *loop;
	std::coroutine_handle<> h{};
	status st{};

	explicit resume_awaiter(evc_loop_ref *l) noexcept : loop(l) {}
	bool await_ready() const noexcept { return false; }
	bool
	await_suspend(std::coroutine_handle<> to) noexcept
	{
		h = to;
		m.fn = posted;
		m.flags = EVC_AFTER_STOP;
		evc_status refused = evc_post_message(loop, &m);
		if (refused == 0)
			return true;
		st = refused;
		return false;
	}
	status await_resume() const noexcept { return st; }
	static void
	posted(evc_message *m, evc_status why) noexcept
	{
		auto *self = reinterpret_cast<resume_awaiter *>(m);

		self->st = why;
		self->h.resume();
	}
};
static_assert(std::is_standard_layout_v<resume_awaiter>);

template <class T>
root
run_root(co<T> body, const char *)
{
	root::promise_type &self = co_await own_root{};
	loop_ref home(self.reactor());
	evc_coord *c = self.coord().get();

	static_assert(std::is_void_v<T> || is_answer<T>,
		      "a coroutine that is spawned returns void, an "
		      "evcoord::code or an evcoord::status");
	EVCOORD_TRY_ {
		if constexpr (std::is_void_v<T>)
			co_await std::move(body);
		else
			hear(c, self.name, co_await std::move(body));
	}
#ifdef EVCOORD_EXCEPTIONS
	catch (...) {
		ignore(report_exception(c, self.name));
	}
#endif
	/* A task ends on the thread of its loop. */
	if (!self.reactor().is_here())
		(void)co_await resume_awaiter(home.get());
}

struct wait;

/* A wait of a coroutine, in memory of its own: a looper, or a message, or first
   the looper and then the message; the last of them frees it.  Loop thread,
   unless the loop is gone. */
struct sleeper {
	evc_message m{};
	loop_ref loop;
	evc_coord *c = nullptr;
	evc_id id = 0; /* the looper's */
	std::chrono::steady_clock::time_point begun;
	double length = 0;
	bool has_run = false;
	std::coroutine_handle<> h; /* null: not suspended any more, or gone */
	wait *w = nullptr;	   /* of h */
	status answer = EVC_CANCELLED; /* that the message brings */

	bool
	over() const
	{
		std::chrono::duration<double> d =
			std::chrono::steady_clock::now() - begun;

		return d.count() + 1e-6 >= length;
	}
	void
	resume(status st, bool remove = false);
	static evc_status
	run(evc_coord *coord, void *arg) noexcept;
	static evc_status
	stop(evc_coord *, void *arg) noexcept
	{
		return static_cast<sleeper *>(arg)->resume(EVC_CANCELLED), 0;
	}
	/* The stop came before the first run, or the loop is gone: perhaps on
	   another thread. */
	static void
	release(void *arg) noexcept
	{
		auto *s = static_cast<sleeper *>(arg);

		if (!s->h)
			delete s;
		else
			s->bring(EVC_CANCELLED);
	}
	/* Resume with this answer in the next turn of the loop.  false: the
	   loop is gone. */
	bool
	post(status st) noexcept
	{
		answer = st;
		m.fn = posted;
		m.flags = EVC_AFTER_STOP;
		return evc_post_message(loop.get(), &m) == 0;
	}
	void
	bring(status st) noexcept
	{
		if (!post(st))
			posted(&m, 0);
	}
	static void
	posted(evc_message *m, evc_status) noexcept
	{
		auto *s = reinterpret_cast<sleeper *>(m);

		s->resume(s->answer);
		delete s;
	}
};
static_assert(std::is_standard_layout_v<sleeper>);

/* What the coroutine's frame has of its wait.  Destroyed before its end, on the
   thread of the loop, it is not resumed. */
struct wait {
	reactor_ref r;
	status st{};
	sleeper *s = nullptr; /* while the coroutine is suspended */

	explicit wait(reactor_ref at) noexcept : r(at) {}
	wait(const wait &) = delete;

	/* Loop thread: the wait has begun, has ended; the answer when the time
	   is over. */
	virtual void on() noexcept {}
	virtual void off() noexcept {}
	virtual status over() noexcept { return EVC_OK; }
	status await_resume() const noexcept { return st; }

protected:
	~wait()
	{
		if (s == nullptr)
			return;
		s->h = nullptr;
		if (s->id != 0)
			ignore(evc_member_remove(s->c, s->id));
	}
	sleeper *
	suspend(std::coroutine_handle<> h)
	{
		s = new sleeper;
		s->c = r.coord().get();
		s->loop = loop_ref(r);
		s->h = h;
		s->w = this;
		return s;
	}
	/* Not suspended, with this answer. */
	bool
	go_on(status answer) noexcept
	{
		delete std::exchange(s, nullptr);
		st = answer;
		return false;
	}
	/* Suspend for one turn of the loop.  The frame is not touched after
	   that, because another thread may have resumed the coroutine. */
	bool
	turn(std::coroutine_handle<> h, status answer)
	{
		return suspend(h)->post(answer) || go_on(answer);
	}
	bool
	sleep_for(std::coroutine_handle<> h, const char *name, double length)
	{
		sleeper *n = suspend(h);
		evc_member_opts k{};

		n->begun = std::chrono::steady_clock::now();
		n->length = length > 0 ? length : 0;
		k.reactor = r.get();
		k.stop = sleeper::stop;
		k.release = sleeper::release;
		status k_st = evc_looper_start(n->c, name, n->length,
					       sleeper::run, n, &k, &n->id);
		if (k_st)
			return true;
		n->id = 0;
		/* During a stop, too, the loop turns once before the coroutine
		   goes on: so a coroutine that does not look at the answer
		   keeps the loop from nothing. */
		if (k_st == code::cancelled)
			return n->post(EVC_CANCELLED) || go_on(EVC_CANCELLED);
		return go_on(k_st);
	}
	/* Coroutines that never have to wait leave the loop to others, too. */
	static bool
	is_due() noexcept
	{
		static thread_local unsigned n;

		return ++n % 64 == 0;
	}
};

inline void
sleeper::resume(status st, bool remove)
{
	auto to = std::exchange(h, nullptr);

	if (!to)
		return;
	w->off();
	w->st = st;
	w->s = nullptr;
	if (remove)
		ignore(evc_member_remove(c, id));
	to.resume();
}

inline evc_status
sleeper::run(evc_coord *, void *arg) noexcept
{
	auto *s = static_cast<sleeper *>(arg);

	if (!std::exchange(s->has_run, true))
		s->w->on();
	if (s->over())
		s->resume(s->w->over(), true);
	return 0;
}

struct sleep_wait final : wait {
	double length;

	sleep_wait(reactor_ref at, double l) noexcept : wait(at), length(l) {}
	bool await_ready() const noexcept { return false; }
	template <class P>
	bool
	await_suspend(std::coroutine_handle<P> h)
	{
		return sleep_for(h, name_of(h), length);
	}
};

#ifdef EV_H_
struct fd_wait final : wait {
	ev_io io;
	double limit;
	struct ev_loop *loop = nullptr; /* that has io */

	fd_wait(reactor_ref at, int fd, int events, double timeout) noexcept
		: wait(at), limit(timeout)
	{
		ev_io_init(&io, ready, fd, events);
		io.data = this;
	}
	~fd_wait() { off(); }
	bool
	await_ready() noexcept
	{
		if (r.loop() == nullptr)
			st = evc_refuse(-EVC_FAILED_PRECONDITION,
					"co_await: only a loop of libev "
					"watches a descriptor");
		else if (r.coord().should_stop())
			st = EVC_DEADLINE_EXCEEDED;
		else
			st = over();
		return st ? r.is_here() && !is_due() : st.refused();
	}
	template <class P>
	bool
	await_suspend(std::coroutine_handle<P> h)
	{
		return st ? turn(h, st) : sleep_for(h, name_of(h), limit);
	}
	void
	on() noexcept override
	{
		loop = r.loop();
		ev_io_start(loop, &io);
	}
	void
	off() noexcept override
	{
		if (loop != nullptr)
			ev_io_stop(std::exchange(loop, nullptr), &io);
	}
	status
	over() noexcept override
	{
		struct pollfd p = { io.fd, short(io.events & EV_READ ? POLLIN
							: POLLOUT), 0 };

		if (poll(&p, 1, 0) == 0 && p.fd >= 0)
			return EVC_DEADLINE_EXCEEDED;
		if (p.fd >= 0 && (p.revents & POLLNVAL) == 0)
			return EVC_OK;
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "co_await: %d is no descriptor", p.fd);
	}
	static void
	ready(struct ev_loop *, ev_io *w, int events) noexcept
	{
		auto *self = static_cast<fd_wait *>(w->data);

		self->s->resume((events & EV_ERROR) == 0 ? EVC_OK : evc_refuse(
			-EVC_INVALID_ARGUMENT,
			"co_await: the loop cannot watch descriptor %d", w->fd),
			true);
	}
};
#endif

template <class T>
struct pop_wait final : wait {
	evc_queue *q;
	std::unique_ptr<T> item;
	evc_id watch = 0;
	std::coroutine_handle<> h;

	pop_wait(queue<T> &from, reactor_ref at) noexcept
		: wait(at), q(from.get()) {}
	~pop_wait()
	{
		if (watch != 0)
			ignore(evc_queue_unwatch(q, watch));
	}
	bool
	await_ready() noexcept
	{
		return pop() && r.is_here() && !is_due();
	}
	bool
	await_suspend(std::coroutine_handle<> to)
	{
		if (st != code::deadline_exceeded)
			return turn(to, st);
		h = to;
		status k = evc_queue_watch(q, r.get(), got, this, 0, &watch);
		if (k)
			return true;
		if (k != code::cancelled)
			return go_on(k);
		/* After a stop a queue may have items. */
		if (!pop() && st == code::deadline_exceeded)
			st = EVC_CANCELLED;
		return turn(to, st);
	}
	result<T>
	await_resume()
	{
		if (!st)
			return st;
		return { std::in_place, std::move(*item) };
	}
	bool
	pop() noexcept
	{
		void *p = nullptr;

		st = evc_queue_pop(q, &p, 0);
		if (st)
			item.reset(static_cast<T *>(p));
		return st.ok();
	}
	static void
	got(evc_queue *q, void *item, evc_status why, void *arg) noexcept
	{
		auto *self = static_cast<pop_wait *>(arg);
		evc_id id = std::exchange(self->watch, 0);

		self->st = why;
		self->item.reset(static_cast<T *>(item));
		if (item != nullptr)
			ignore(evc_queue_unwatch(q, id));
		self->h.resume();
	}
};

template <class T>
struct push_wait final : wait {
	queue<T> &q;
	std::unique_ptr<T> item;

	push_wait(queue<T> &to, reactor_ref at, std::unique_ptr<T> i) noexcept
		: wait(at), q(to), item(std::move(i)) {}
	bool
	await_ready()
	{
		st = q.push(item, 0);
		return st && r.is_here() && !is_due();
	}
	bool
	await_suspend(std::coroutine_handle<> h)
	{
		if (st != code::deadline_exceeded)
			return turn(h, st);
		q.push_later(std::move(item), suspend(h), told);
		return true;
	}
	static void
	told(void *arg, status st) noexcept
	{
		static_cast<sleeper *>(arg)->bring(st);
	}
};

} // namespace detail

/*
 * Run body on the loop of r, as a task of the name: at once, up to its first
 * wait.  Its error or exception is one of the coordinator.  After the stop body
 * does not begin.
 */
template <class T>
status
spawn(reactor_ref r, const char *name, co<T> body)
{
	if (!body)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "spawn: the coroutine was moved from");
	detail::root o = detail::run_root(std::move(body), name);
	status st = o.h.promise().begin(r);

	if (st)
		o.h.resume();
	else
		o.h.destroy();
	return st;
}

/* co_await sleep(r, 1.5): ok when the time is over; cancelled at a stop, and in
   the next turn of the loop while a stop stands.  The coroutine goes on on the
   loop of r. */
[[nodiscard]] inline detail::sleep_wait
sleep(reactor_ref r, seconds s) noexcept { return { r, s }; }

/* co_await until_stop(r) */
[[nodiscard]] inline detail::sleep_wait
until_stop(reactor_ref r) noexcept { return { r, forever }; }

/* co_await readable(r, fd): ok, cancelled as in sleep, or deadline_exceeded.
   fd stays open meanwhile.  r is a loop of libev. */
#ifdef EV_H_
[[nodiscard]] inline detail::fd_wait
readable(reactor_ref r, int fd, seconds timeout = forever) noexcept
{
	return { r, fd, EV_READ, timeout };
}
[[nodiscard]] inline detail::fd_wait
writable(reactor_ref r, int fd, seconds timeout = forever) noexcept
{
	return { r, fd, EV_WRITE, timeout };
}
#else
template <class R, class... A>
void
readable(R, A...)
{
	static_assert(sizeof(R) == 0, "include <ev.h> before <evcoord.hpp>");
}
template <class R, class... A>
void
writable(R, A...)
{
	static_assert(sizeof(R) == 0, "include <ev.h> before <evcoord.hpp>");
}
#endif

/* co_await pop_from(q, r), push_to(q, r, item): as q.pop() and q.push(item),
   and the coroutine goes on on the loop of r.  An item that is refused is
   destroyed. */
template <class T>
[[nodiscard]] detail::pop_wait<T>
pop_from(queue<T> &q, reactor_ref r) noexcept { return { q, r }; }
template <class T>
[[nodiscard]] detail::push_wait<T>
push_to(queue<T> &q, reactor_ref r, typename queue<T>::value_type item)
{
	return { q, r, std::make_unique<T>(std::move(item)) };
}

/* co_await resume_on(l): the coroutine goes on on that loop, in its next turn;
   also after the stop.  cancelled or not_found when the loop is gone: then the
   coroutine goes on on any thread. */
[[nodiscard]] inline detail::resume_awaiter
resume_on(const loop_ref &l) noexcept
{
	return detail::resume_awaiter(l.get());
}

namespace detail {

template <class W>
decltype(auto)
work_with(W &w, evc_job *j)
{
	if constexpr (std::is_invocable_v<W &, job_ref>)
		return w(job_ref(j));
	else
		return w();
}

} // namespace detail

/* co_await run_in(p, r, "name", work): work runs on a thread of the pool, the
   coroutine goes on on the loop of r.  The answer is the status of work; a work
   that returns another T gives a result<T>. */
template <class W>
[[nodiscard]] auto
run_in(pool &p, reactor_ref r, const char *name, W work)
{
	using R = decltype(detail::work_with(std::declval<W &>(), nullptr));
	constexpr bool plain = std::is_void_v<R> || detail::is_answer<R>;
	static_assert(plain || !std::is_reference_v<R>,
		      "the work of run_in returns a value: a pointer instead "
		      "of a reference");
	using V = std::conditional_t<plain, char, std::decay_t<R>>;
	struct awaiter : evc_job {
		evc_pool *pool_;
		evc_coord *c;
		evc_reactor *r;
		W w;
		std::optional<V> v{};
		status st{};
		std::coroutine_handle<> h{};

		awaiter(pool &in, reactor_ref at, const char *n, W &&fn)
			: evc_job(), pool_(in.get()), c(in.coord().get()),
			  r(at.get()), w(std::move(fn))
		{
			name = n;
			work = run;
			done = finish;
		}
		bool await_ready() const noexcept { return false; }
		bool
		await_suspend(std::coroutine_handle<> to) noexcept
		{
			h = to;
			evc_status refused = evc_pool_submit(pool_, r, this);
			if (refused == 0)
				return true;
			st = refused == -EVC_CANCELLED ? EVC_CANCELLED
						       : refused;
			return false;
		}
		std::conditional_t<plain, status, result<V>>
		await_resume()
		{
			if constexpr (plain)
				return st;
			else if (v)
				return std::move(*v);
			else
				return st;
		}
		static evc_status
		run(evc_job *j)
		{
			auto *self = static_cast<awaiter *>(j);

			return detail::caught_anew(self->c, detail::or_empty(
							   j->name), [&] {
				auto f = [&] {
					return detail::work_with(self->w, j);
				};

				if constexpr (plain)
					return detail::answer(f);
				else
					return self->v.emplace(f()),
					       evc_status{ EVC_OK };
			});
		}
		static void
		finish(evc_job *j, evc_status result_) noexcept
		{
			auto *self = static_cast<awaiter *>(j);

			self->st = result_;
			self->h.resume();
		}
	};
	return awaiter(p, r, name, std::move(work));
}

#endif /* EVCOORD_COROUTINES */

} // namespace evcoord

#endif
