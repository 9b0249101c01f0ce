/* The model of docs/spec/explorer.md 1.1, unchanged below this line. It is
 * the common model that bench/spin/run gives to SPIN, and whose C++ form is sim/zero_epilogue/. */
/*
 * zero_epilogue.pml -- hook ordering of a sharded data-parallel backward pass
 *
 * P ranks.  On every rank one autograd thread fires N gradient hooks in any
 * order that the graph allows.  A graph-task callback runs when the graph
 * task is complete; where the callback interface is missing, a fallback
 * counter stands in for it.  Hooks fill buckets of B gradients; a full bucket
 * is reduced, in bucket order, and the epilogue flushes what is left.  A
 * reduce completes on a rank's communication stream some time after every
 * rank has issued it, asynchronously to the hooks.
 *
 * Safety properties
 *   A1  the epilogue runs exactly once per rank and pass
 *   A2  no hook of the pass fires after its epilogue started
 *   A3  every bucket of the pass is reduced when the epilogue returns
 *   A4  the j-th collective carries the same bucket on every rank
 *   A5  no invalid end state (nothing hangs)
 *
 * Parameters (-D)
 *   P ranks, N hooks per rank and pass (<= 12), B hooks per bucket,
 *   K passes, ORD 0 any order | 1 chain | 2 spine with layers of W leaves
 *   | 3 two phases, N1 hooks in the first (reentrant checkpoint),
 *   API 0 fallback counter | 1 callback | 2 free choice per rank,
 *   LATE 0 reduce launched inside the hook | 1 launched at any later point,
 *   MUT 0 correct | 1..9 seeded defects
 */
#ifndef P
#define P 2
#endif
#ifndef N
#define N 6
#endif
#ifndef B
#define B 2
#endif
#ifndef K
#define K 1
#endif
#ifndef ORD
#define ORD 0
#endif
#ifndef W
#define W 2
#endif
#ifndef N1
#define N1 (N/2)
#endif
#ifndef API
#define API 2
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef MUT
#define MUT 0
#endif

#define NB    ((N+B-1)/B)                    /* buckets per pass            */
#define ALL   ((1<<N)-1)
#define PH1   ((1<<(N1))-1)
#define LAST  (NB*(pass+1))                  /* collectives due by now      */
#define BM(b) (((1<<B)-1) << ((b)*B))        /* hooks of bucket b           */
#define FULL  (nis < LAST && (fired & BM(nis%NB)) == BM(nis%NB))

#if ORD == 0
#define EN(i) (!(fired & (1<<(i))))
#elif ORD == 1
#define EN(i) (fired == ((1<<(i))-1))
#elif ORD == 2
#define EN(i) (!(fired & (1<<(i))) && ((i)/W) < spine)
#else
#define EN(i) (!(fired & (1<<(i))) && ((i) < (N1) || (fired & PH1) == PH1))
#endif

#if LATE == 0
#define MAY   (!rdy)
#else
#define MAY   (1)
#endif

#if MUT == 5    /* M5: buckets are issued in the order they become full    */
#define PICK(b) :: b < NB && !(isd & (1<<b)) && (fired & BM(b)) == BM(b) -> rdy = b+1; isd = isd | (1<<b)
#define UPDATE  if :: rdy == 0 -> if PICK(0) PICK(1) PICK(2) PICK(3) PICK(4) PICK(5) :: else fi :: else fi
#else
#define UPDATE  rdy = FULL
#endif

#if MUT == 9    /* M9: flush lost if the hooks fired in exactly reverse order */
#define SEEN(i) desc = desc && (fired == (ALL & ~((1<<((i)+1))-1)));
#else
#define SEEN(i)
#endif
#define HOOK(i) :: d_step { MAY && EN(i) -> \
        assert(epi == 0);                    /* A2 */ \
        SEEN(i) \
        fired = fired | (1<<(i)); queued = api; left--; UPDATE }

#if MUT == 6    /* M6: the epilogue forgets the partly filled bucket       */
#define FLUSH
#elif MUT == 9
#define FLUSH   rdy = (nis < LAST && !desc)
#elif MUT == 5
#define FLUSH   if :: nis < LAST && rdy == 0 -> rdy = NB :: else fi
#else
#define FLUSH   rdy = (nis < LAST)
#endif
#define EPILOGUE  epi++; assert(epi == 1);       /* A1 */  FLUSH

byte arrived[NB*K];     /* ranks that have issued collective j             */
byte tag[NB*K];         /* bucket+1 carried by collective j                */
byte done[P];           /* collectives completed on the stream of rank r   */

proctype Engine(byte r)
{
    short fired;        /* hooks fired in this pass                        */
    byte  left;         /* fallback counter                                */
    byte  epi;          /* epilogues in this pass                          */
    byte  nis;          /* collectives issued in all passes                */
    byte  pass;
    byte  rdy;          /* a bucket is to be issued now                    */
    bit   api, queued;
#if ORD == 2
    byte  spine = 1;
#endif
#if MUT == 5
    byte  isd;
#endif
#if MUT == 9
    bit   desc = 1;
#endif

#if API == 0
    api = 0;
#elif API == 1
    api = 1;
#else
    if :: api = 0 :: api = 1 fi;
#endif

next_pass:
#if MUT == 1    /* M1: counts only the hooks of the first phase            */
    left = (N1);
#elif MUT == 7  /* M7: not reset for the second pass                       */
    if :: pass == 0 -> left = N :: else fi;
#else
    left = N;
#endif

hooks:    /* every option here is local to the rank */
    do
    HOOK(0)
#if N > 1
    HOOK(1)
#endif
#if N > 2
    HOOK(2)
#endif
#if N > 3
    HOOK(3)
#endif
#if N > 4
    HOOK(4)
#endif
#if N > 5
    HOOK(5)
#endif
#if N > 6
    HOOK(6)
#endif
#if N > 7
    HOOK(7)
#endif
#if N > 8
    HOOK(8)
#endif
#if N > 9
    HOOK(9)
#endif
#if N > 10
    HOOK(10)
#endif
#if N > 11
    HOOK(11)
#endif
#if ORD == 2
    :: d_step { MAY && spine*W < N -> spine++ }
#endif
    /* fallback counter */
#if MUT == 2    /* M2: does not look whether a callback is queued          */
    :: d_step { MAY && left == 0 && fired != 0 && epi < 2 -> EPILOGUE }
#elif MUT == 8  /* M8: the "already ran" flag is not looked at             */
    :: d_step { MAY && left == 0 && fired != 0 && !queued && epi < 2 -> EPILOGUE }
#else
    :: d_step { MAY && left == 0 && fired != 0 && !queued && epi == 0 -> EPILOGUE }
#endif
    /* graph-task callback */
#if MUT == 3    /* M3: queued on the inner graph task, which ends early    */
    :: d_step { MAY && queued && epi == 0 && (fired & PH1) == PH1 -> queued = 0; EPILOGUE }
#elif MUT == 2
    :: d_step { MAY && queued && fired == ALL && epi < 2 -> queued = 0; EPILOGUE }
#else
    :: d_step { MAY && queued && fired == ALL && epi == 0 -> queued = 0; EPILOGUE }
#endif
    :: rdy || epi -> break
    od;

    if    /* global: launch the next reduce, or wait for the stream */
#if MUT == 5
    :: atomic { rdy ->
        assert(tag[nis] == 0 || tag[nis] == rdy);            /* A4 */
        tag[nis] = rdy; arrived[nis]++; nis++; rdy = 0; UPDATE;
        if :: epi -> FLUSH :: else fi };
        goto hooks
#else
    :: atomic { rdy ->
        assert(tag[nis] == 0 || tag[nis] == (nis%NB)+1);     /* A4 */
        tag[nis] = (nis%NB)+1; arrived[nis]++; nis++;
        if :: epi -> FLUSH :: else -> UPDATE fi };
        goto hooks
#endif
#if MUT == 4    /* M4: does not wait for the stream                        */
    :: atomic { !rdy && epi -> assert(done[r] == nis) }
#else
    :: atomic { !rdy && epi && done[r] == nis }
#endif
    fi;
    d_step {
        assert(fired == ALL && nis == LAST && epi == 1);     /* A2 A3 A1 */
        pass++; fired = 0; epi = 0; queued = 0;
#if ORD == 2
        spine = 1;
#endif
#if MUT == 5
        isd = 0;
#endif
#if MUT == 9
        desc = 1;
#endif
    }
    if
    :: pass < K -> goto next_pass
    :: else
    fi
}

/* communication stream of rank r: in order; needs every rank's launch */
proctype Stream(byte r)
{
    byte k;
    do
    :: atomic { k < NB*K && arrived[k] == P -> done[r]++; k++ }
    :: k == NB*K -> break
    od
}

init {
    byte r;
    atomic {
        do
        :: r < P -> run Engine(r); run Stream(r); r++
        :: else -> break
        od
    }
}
